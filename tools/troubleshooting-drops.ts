// The table of drop reasons, from the books of the program.

import {
  type DropPlace,
  type DropReason,
  dropReasons,
  ofReceiver,
} from '../src/foundation/model/drop-reasons.ts'
import { kernelDrops } from '../src/signals/capture/kernel-drops.ts'
import { cell, code, mark, table, withKeys } from './markdown.ts'

const places: Readonly<Record<DropPlace, string>> = {
  queue: 'in the queue',
  receiver: 'at the receiver',
  capture: 'during capture',
  pipeline: 'in the pipeline',
  scraping: 'on a scraped page',
}

/** By place, in Markdown. */
export function dropTable(): string {
  const order = Object.keys(places)
  const rows = Object.entries(dropReasons)
    .sort(([, a], [, b]) => order.indexOf(a.place) - order.indexOf(b.place))
    .map(([reason, drop]) => dropRow(`${mark('drop', reason)}${code(reason)}`, drop, counterNote(reason)))
  const others = dropRow('`invalid_argument`, `http_400` and others', ofReceiver)
  return table(['reason', 'place', 'meaning', 'fix'], [...rows, others])
}

/** The counter of the kernel side, if it has another name than the reason. */
function counterNote(reason: string): string {
  const [counter = reason] = kernelDrops.find(each => each[1] === reason) ?? []
  return counter === reason
    ? ''
    : `; the kernel side counts them as \`svc_ebpf_capture_total{event="${counter}"}\``
}

function dropRow(name: string, { place, means, hint, wished }: DropReason, note = ''): readonly string[] {
  return [
    name,
    wished ? 'no loss: as configured' : places[place],
    withKeys(cell(means)) + note,
    withKeys(cell(hint)),
  ]
}
