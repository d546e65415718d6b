import { readFileSync } from 'node:fs'
import type { Owner } from '../foundation/lib/fair-share.ts'

/** Of a path of control groups: longer ones are cut. */
const mostText = 256
const unitSuffix = /\.(?:service|scope)$/
const containerId = /[0-9a-f]{64}/

/** Whoever is gone, or may not be looked at: all of them share. */
export const unknownOwner: Owner = { group: '', user: 'unknown' }

/**
 * Who answers for what a process brings: the unit, container or login session that it runs in, and its user in there.
 * What a user may make within its own session or container (groups below, users of a user namespace) is no other owner's.
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

/** The outermost unit, container or session of a process by its /proc/PID/cgroup (cgroups(7)); '' for none. */
export function groupOf(cgroupFile: string): string {
  let found = ''
  for (const line of cgroupFile.split('\n')) {
    const at = line.indexOf('/')
    if (at < 0) continue
    const group = outermost(line.slice(at))
    // Of several hierarchies, the unified one comes last, and in a hybrid one it may have no groups.
    if (group !== '') found = group
  }
  return found.slice(0, mostText)
}

function outermost(path: string): string {
  const names = path.split('/').slice(1)
  if (names[0] === '') return ''
  // A user may make whatever it likes below its own session.
  if (names[0] === 'user.slice' && names.length > 1) return `/${names[0]}/${names[1]}`
  const at = names.findIndex(name => unitSuffix.test(name) || containerId.test(name))
  return `/${names.slice(0, at < 0 ? 2 : at + 1).join('/')}`
}
