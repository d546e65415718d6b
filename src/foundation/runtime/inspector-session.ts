import type { Session } from 'node:inspector/promises'

/** Talks to V8 and Node.js in this very process; opens no port. The caller disconnects it. Throws where it is missing. */
export async function inspectorSession(): Promise<Session> {
  const inspector =
    process.getBuiltinModule?.('node:inspector/promises') ?? (await import('node:inspector/promises'))
  const session = new inspector.Session()
  session.connect()
  return session
}
