import { readFileSync } from 'node:fs'

/** The ids under which a server runs that refuses root: those of its own account or else of `nobody`. */
export function accountOf(name: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const lines = readFileSync('/etc/passwd', 'latin1').split('\n')
  for (const wanted of [name, 'nobody']) {
    const fields = lines.find(line => line.startsWith(`${wanted}:`))?.split(':')
    if (fields !== undefined) return { uid: Number(fields[2]), gid: Number(fields[3]) }
  }
  return undefined
}
