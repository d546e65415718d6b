import type { FamilyOptions } from '../../../foundation/model/collector.ts'
import { numberAt, optionalNumberAt, optionalTextAt } from './_small-file.ts'
import { collector, counter, type Readings, type Tree } from './collector.ts'

const rowLabels = { labels: ['controller', 'csrow'] }
const channelLabels = { labels: ['channel', 'controller', 'csrow', 'dimm_label'] }

const corrected = counter(
  'edac_correctable_errors_total',
  'Memory errors that were corrected.',
  errorsOf('corrected'),
)
const uncorrected = counter(
  'edac_uncorrectable_errors_total',
  'Memory errors beyond correction.',
  errorsOf('uncorrected'),
)
const rowCorrected = counter(
  'edac_csrow_correctable_errors_total',
  'Memory errors that were corrected, by row of chips.',
  rowLabels,
)
const rowUncorrected = counter(
  'edac_csrow_uncorrectable_errors_total',
  'Memory errors beyond correction, by row of chips.',
  rowLabels,
)
const channelCorrected = counter(
  'edac_channel_correctable_errors_total',
  'Memory errors that were corrected, by channel of a row.',
  channelLabels,
)
const channelUncorrected = counter(
  'edac_channel_uncorrectable_errors_total',
  'Memory errors beyond correction, by channel of a row.',
  channelLabels,
)

/** Options of controllers only: their errors include those of all rows and channels. */
function errorsOf(type: string): FamilyOptions {
  return {
    labels: ['controller'],
    otel: {
      name: 'hw.errors',
      unit: '{error}',
      kind: 'counter',
      attributes: { controller: 'hw.id' },
      constant: { 'hw.type': 'memory', 'error.type': type },
    },
  }
}

const directory = 'devices/system/edac/mc'

/** Memory errors, from /sys/devices/system/edac/mc (Linux, Documentation/admin-guide/RAS). */
export const edac = collector({
  name: 'edac',
  summary: 'Memory errors',
  source: '/sys/devices/system/edac/mc',
  enabledByDefault: true,
  metrics: [corrected, uncorrected, rowCorrected, rowUncorrected, channelCorrected, channelUncorrected],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      for (const [name, controller] of numbered(sys, directory, /^mc(\d+)/)) {
        const path = `${directory}/${name}`
        readings.set(corrected, numberAt(sys, `${path}/ce_count`), controller)
        readings.set(rowCorrected, numberAt(sys, `${path}/ce_noinfo_count`), controller, 'unknown')
        readings.set(uncorrected, numberAt(sys, `${path}/ue_count`), controller)
        readings.set(rowUncorrected, numberAt(sys, `${path}/ue_noinfo_count`), controller, 'unknown')
        for (const [row, number] of numbered(sys, path, /^csrow(\d+)/))
          readRow(sys, `${path}/${row}`, controller, number, readings)
      }
    },
  }),
})

function readRow(sys: Tree, path: string, controller: string, row: string, readings: Readings): void {
  readings.set(rowCorrected, numberAt(sys, `${path}/ce_count`), controller, row)
  const uncorrectedHere = optionalNumberAt(sys, `${path}/ue_count`)
  if (uncorrectedHere !== undefined) readings.set(rowUncorrected, uncorrectedHere, controller, row)
  for (const [file, channel] of numbered(sys, path, /^ch(\d+)_ce_count$/)) {
    const labels = [channel, controller, row, dimmLabel(sys, `${path}/ch${channel}_dimm_label`)]
    readings.setAll(channelCorrected, numberAt(sys, `${path}/${file}`), labels)
    // Some drivers do not report uncorrectable errors by channel.
    const count = optionalNumberAt(sys, `${path}/ch${channel}_ue_count`)
    if (count !== undefined) readings.setAll(channelUncorrected, count, labels)
  }
}

/** Names in a directory that match, with the number in them. */
function numbered(
  sys: Tree,
  path: string,
  pattern: RegExp,
): readonly (readonly [name: string, number: string])[] {
  return sys.list(path).flatMap(name => {
    const number = pattern.exec(name)?.[1]
    return number === undefined ? [] : [[name, number] as const]
  })
}

/** Label of the module, with the default of drivers (`mc#0csrow#1channel#0`) made readable. */
function dimmLabel(sys: Tree, path: string): string {
  const text = optionalTextAt(sys, path)
  return text === undefined
    ? 'unknown'
    : text.replaceAll('#', '').replaceAll('csrow', '_csrow').replaceAll('channel', '_channel')
}
