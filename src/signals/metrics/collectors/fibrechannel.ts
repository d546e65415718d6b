import type { OtelName } from '../../../foundation/model/collector.ts'
import { optionalTextAt } from './_small-file.ts'
import { collector, counter, gauge, NoData, type Readings, type Tree } from './collector.ts'

const labels = ['fc_host']
/** A word of Fibre Channel is four bytes (FC-FS, 5.3). */
const wordBytes = 4

/** Files in the order of their labels. `hex`: the label is without `0x`. */
const facts = [
  { file: 'dev_loss_tmo', hex: false },
  { file: 'fabric_name', hex: true },
  { file: 'fc_host', hex: false },
  { file: 'port_id', hex: true },
  { file: 'port_name', hex: true },
  { file: 'port_state', hex: false },
  { file: 'port_type', hex: false },
  { file: 'speed', hex: false },
  { file: 'supported_classes', hex: false },
  { file: 'supported_speeds', hex: false },
  { file: 'symbolic_name', hex: false },
]

const info = gauge('fibrechannel_info', 'What a Fibre Channel host is and can; always 1.', {
  labels: facts.map(({ file }) => file),
})

/** Counters in the semantic conventions, by name. A frame with an error is also counted under the kind of error. */
const conventions: Readonly<Record<string, OtelName>> = {
  rx_frames: convention('hw.network.packets', '{packet}', { 'network.io.direction': 'receive' }),
  tx_frames: convention('hw.network.packets', '{packet}', { 'network.io.direction': 'transmit' }),
  rx_words: { ...convention('hw.network.io', 'By', { 'network.io.direction': 'receive' }), scale: wordBytes },
  tx_words: {
    ...convention('hw.network.io', 'By', { 'network.io.direction': 'transmit' }),
    scale: wordBytes,
  },
  invalid_crc: errors('crc'),
  invalid_tx_words: errors('invalid_word'),
  link_failure: errors('link_failure'),
  loss_of_sync: errors('loss_of_sync'),
  loss_of_signal: errors('loss_of_signal'),
}

function errors(type: string): OtelName {
  return convention('hw.errors', '{error}', { 'hw.type': 'network', 'error.type': type })
}

function convention(name: string, unit: string, constant: Readonly<Record<string, string>>): OtelName {
  return { name, unit, kind: 'counter', attributes: { fc_host: 'hw.id' }, constant }
}

const counters = [
  ['dumped_frames', 'dumped_frames', 'Frames thrown away.'],
  ['error_frames', 'error_frames', 'Frames with an error.'],
  ['invalid_crc_count', 'invalid_crc', 'Frames with a wrong checksum.'],
  ['rx_frames', 'rx_frames', 'Frames received.'],
  ['rx_words', 'rx_words', 'Words received.'],
  ['tx_frames', 'tx_frames', 'Frames sent.'],
  ['tx_words', 'tx_words', 'Words sent.'],
  ['seconds_since_last_reset', 'seconds_since_last_reset', 'Seconds since the statistics were reset.'],
  ['invalid_tx_word_count', 'invalid_tx_words', 'Words that were not valid.'],
  ['link_failure_count', 'link_failure', 'Failures of the link.'],
  ['loss_of_sync_count', 'loss_of_sync', 'Times that synchronisation was lost.'],
  ['loss_of_signal_count', 'loss_of_signal', 'Times that the signal was lost.'],
  ['nos_count', 'nos', 'Times that the other side said it does not work (NOS).'],
  ['fcp_packet_aborts', 'fcp_packet_aborts', 'Packets of SCSI that were given up.'],
].map(([file, name, help]) => ({
  file: file!,
  family: counter(`fibrechannel_${name}_total`, help!, {
    labels,
    ...(name!.startsWith('seconds') ? { unit: 's' } : {}),
    ...(conventions[name!] === undefined ? {} : { otel: conventions[name!]! }),
  }),
}))

/** Value of unsupported counters: a 64-bit -1 (Linux, scsi_transport_fc.h). */
const notCounted = 2 ** 64

const directory = 'class/fc_host'

/** Fibre Channel hosts, from /sys/class/fc_host (Linux, drivers/scsi/scsi_transport_fc.c). */
export const fibrechannel = collector({
  name: 'fibrechannel',
  summary: 'Traffic and errors of Fibre Channel hosts',
  source: '/sys/class/fc_host',
  enabledByDefault: true,
  metrics: [info, ...counters.map(({ family }) => family)],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      const names = sys.list(directory)
      if (names.length === 0 && !sys.exists(directory))
        throw new NoData(`${sys.at(directory)} not found: no Fibre Channel host`)
      for (const name of names) readHost(sys, name, readings)
    },
  }),
})

function readHost(sys: Tree, name: string, readings: Readings): void {
  const path = `${directory}/${name}`
  const values = facts.map(({ file, hex }) => {
    if (file === 'fc_host') return name
    // Drivers omit unknown values.
    const text = optionalTextAt(sys, `${path}/${file}`) ?? ''
    return hex && text.length > 2 ? text.slice(2) : text
  })
  readings.setAll(info, 1, values)
  for (const { file, family } of counters) {
    const value = count(sys, `${path}/statistics/${file}`)
    if (value !== undefined && value !== notCounted) readings.set(family, value, name)
  }
}

/** Drivers write counters as `0x1f`. */
function count(sys: Tree, path: string): number | undefined {
  const text = sys.find(path)
  if (text === undefined) return undefined
  if (!/^(0x[0-9a-f]{1,16}|\d{1,20})$/i.test(text)) throw new Error(`cannot read ${sys.at(path)}: no number`)
  return Number(text)
}
