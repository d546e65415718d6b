import { counted } from '../../../foundation/lib/number-text.ts'
import { ExitCode } from '../../../foundation/lib/start-error.ts'
import { lockHolder } from '../../../pipeline/disk/disk-lock.ts'
import type { Inspected } from '../../../pipeline/disk/inspect-log.ts'
import { print } from '../terminal.ts'
import type { QueuePlace } from './place.ts'
import { survey } from './survey.ts'

/** Reads the whole queue and reports each damage. `ExitCode.general` if there is any. */
export function verify({ directory, signals }: QueuePlace, asJson: boolean): ExitCode {
  const agentRuns = lockHolder(directory) !== undefined
  const all = signals.map(signal => ({ signal, ...survey(directory, signal, agentRuns) }))
  const places = all.reduce((sum, { faults }) => sum + faults.length, 0)
  if (asJson) print(`${JSON.stringify({ signals: all.map(documentOf) }, undefined, 2)}\n`)
  else {
    for (const surveyed of all) print(textOf(surveyed))
    if (places > 0)
      print('Damaged batches are dropped and counted (reason corrupt); all others are delivered.\n')
  }
  return places === 0 ? ExitCode.ok : ExitCode.general
}

type Surveyed = { readonly signal: string } & ReturnType<typeof survey>

function textOf({ signal, waiting, dead, faults }: Surveyed): string {
  const refused =
    dead.batches > 0 ? `, and ${counted(dead.batches, 'rejected batch', 'rejected batches')}` : ''
  const what = `${counted(waiting.batches, 'batch', 'batches')} with ${counted(waiting.items, 'item')} whole${refused}`
  const damage = faults.length === 0 ? 'no damage' : `damage in ${counted(faults.length, 'place')}`
  return [...faults.map(faultText), `${signal}: ${what}; ${damage}`].map(line => `${line}\n`).join('')
}

function documentOf({ signal, waiting, dead, faults }: Surveyed) {
  return {
    signal,
    batches: waiting.batches,
    items: waiting.items,
    rejected_batches: dead.batches,
    faults: faults.map(fault => ({ file: fault.file, offset: fault.offset, message: faultText(fault) })),
  }
}

function faultText({ file, offset, damage, unreadable }: Inspected): string {
  if (!damage) return `${file}: cannot be read: ${unreadable}`
  const { bytes, items, torn } = damage
  const lost = items > 0 ? `, with ${counted(items, 'item')}` : ''
  if (!torn) return `${file}: at byte ${offset}: ${counted(bytes, 'damaged byte')}${lost}`
  return `${file}: at byte ${offset}: ${counted(bytes, 'byte')} of an incomplete batch; it was never accepted, and the agent removes it at the next start`
}
