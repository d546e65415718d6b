import { readFileSync } from 'node:fs'
import type { Owner } from '../foundation/lib/fair-share.ts'

/** Maximum length of a cgroup path; longer ones are truncated. */
const mostText = 256
const unitSuffix = /\.(?:service|scope)$/
const containerId = /[0-9a-f]{64}/

/** Shared by all processes that exited or may not be read. */
export const unknownOwner: Owner = { group: '', user: 'unknown' }

/**
 * The owner of a process: the unit, container or login session that it runs in, and its user there. Anything that a
 * user can create in its own session or container (nested groups, users of a user namespace) does not make another
 * owner.
 */
export function ownerOf(procDir: string, pid: number): Owner {
  try {
    const uid = /^Uid:\t\d+\t(\d+)/m.exec(readFileSync(`${procDir}/${pid}/status`, 'latin1'))?.[1]
    if (uid === undefined) return unknownOwner
    return { group: groupOf(readFileSync(`${procDir}/${pid}/cgroup`, 'utf8')), user: uid }
  } catch {
    return unknownOwner
  }
}

/** The outermost unit, container or session in /proc/PID/cgroup (cgroups(7)); '' for none. */
export function groupOf(cgroupFile: string): string {
  let found = ''
  for (const line of cgroupFile.split('\n')) {
    const at = line.indexOf('/')
    if (at < 0) continue
    const group = outermost(line.slice(at))
    // With several hierarchies, the unified one is last, and in hybrid mode it may have no groups.
    if (group !== '') found = group
  }
  return found.slice(0, mostText)
}

function outermost(path: string): string {
  const names = path.split('/').slice(1)
  if (names[0] === '') return ''
  // A user may create any groups below its own session.
  if (names[0] === 'user.slice' && names.length > 1) return `/${names[0]}/${names[1]}`
  const at = names.findIndex(name => unitSuffix.test(name) || containerId.test(name))
  return `/${names.slice(0, at < 0 ? 2 : at + 1).join('/')}`
}
