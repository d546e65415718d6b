import type { FollowedLog } from './followed-log.ts'
import type { LogFile } from './log-file.ts'

/**
 * Removes half of the waiting files, the oldest ones, of the owner with the most from their logs.
 * Files being read, and files at their path, stay.
 */
export function giveUpWaiting(logs: Iterable<FollowedLog>): [FollowedLog, LogFile][] {
  const owners = new Map<string, { waiting: number; readonly logs: FollowedLog[] }>()
  for (const log of logs) {
    const waiting = Math.max(0, log.files.length - 2)
    if (waiting === 0) continue
    const own = owners.get(log.owner) ?? { waiting: 0, logs: [] }
    owners.set(log.owner, own)
    own.waiting += waiting
    own.logs.push(log)
  }
  let richest: readonly FollowedLog[] = []
  let most = 0
  for (const { waiting, logs: own } of owners.values())
    if (waiting > most) {
      most = waiting
      richest = own
    }
  const given: [FollowedLog, LogFile][] = []
  for (const log of richest)
    for (const file of log.files.splice(1, Math.ceil((log.files.length - 2) / 2))) given.push([log, file])
  return given
}
