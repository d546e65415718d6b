import type { Session } from 'node:inspector/promises'

/** Connects to V8's inspector in this process; opens no port. The caller disconnects it. Throws if it is missing. */
export async function inspectorSession(): Promise<Session> {
  const inspector =
    process.getBuiltinModule?.('node:inspector/promises') ?? (await import('node:inspector/promises'))
  const session = new inspector.Session()
  session.connect()
  return session
}
