import { ExitCode } from '../../lib/start-error.ts'
import { lockHolder } from '../../pipeline/disk/disk-lock.ts'
import type { Inspected } from '../../pipeline/disk/inspect-log.ts'
import { print } from '../terminal.ts'
import type { QueuePlace } from './place.ts'
import { survey } from './survey.ts'
import { count } from './words.ts'

/** Reads all of the queue and names each damage. `ExitCode.general` where there is any. */
export function verify({ directory, signals }: QueuePlace): ExitCode {
  const agentRuns = lockHolder(directory) !== undefined
  let places = 0
  for (const signal of signals) {
    const { waiting, dead, faults } = survey(directory, signal, agentRuns)
    for (const fault of faults) print(`${faultText(fault)}\n`)
    places += faults.length
    const refused = dead.batches > 0 ? `, and ${count(dead.batches, 'refused batch', 'refused batches')}` : ''
    const what = `${count(waiting.batches, 'batch', 'batches')} with ${count(waiting.items, 'item')} whole${refused}`
    print(
      `${signal}: ${what}; ${faults.length === 0 ? 'no damage' : `damage in ${count(faults.length, 'place')}`}\n`,
    )
  }
  if (places > 0)
    print('Damaged batches are left out and counted (reason corrupt); all others are delivered.\n')
  return places === 0 ? ExitCode.ok : ExitCode.general
}

function faultText({ file, offset, damage, unreadable }: Inspected): string {
  if (!damage) return `${file}: cannot be read: ${unreadable}`
  const { bytes, items, torn } = damage
  const lost = items > 0 ? `, with ${count(items, 'item')}` : ''
  if (!torn) return `${file}: at byte ${offset}: ${count(bytes, 'damaged byte')}${lost}`
  return `${file}: at byte ${offset}: ${count(bytes, 'byte')} of a batch whose writing was cut short; it was never accepted, and the agent removes it when it starts`
}
