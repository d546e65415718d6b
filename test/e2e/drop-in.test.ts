// The claim to be a drop-in replacement, held against the real exporter on this host: what it serves is served, with the
// same types, series and values.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { exporterProgram, withoutExporter } from '../helpers/exporter-peer.ts'
import { ExporterProcess } from '../helpers/exporter-process.ts'
import { type Exposition, type Family, parseExposition, type Sample } from '../helpers/exposition.ts'

const rounds = process.env.SVC_SOAK === '1' ? 20 : 4

/** The package turns on a collector that the exporter has off, and this host has no systemd to ask. */
const peerArguments = ['--no-collector.systemd']

/** What the peer says of itself or of its own runtime, and what is no reading of the host. */
const notCompared = /^(go_|promhttp_|node_exporter_build_info$|node_scrape_collector_duration_seconds$)/

let peer: ExporterProcess
let own: ExporterProcess

before(async () => {
  if (withoutExporter !== false) return
  peer = await ExporterProcess.start(exporterProgram, peerArguments)
  own = await ExporterProcess.own()
})
after(async () => {
  await peer?.stop()
  await own?.stop()
})

/** Its summary of its runtime's garbage collection has a type that the strict reader does not know. */
async function read(exporter: ExporterProcess): Promise<Exposition> {
  const text = await exporter.page()
  const lines = text.split('\n').filter(line => !/^(# (HELP|TYPE) )?go_/.test(line))
  return parseExposition(lines.join('\n'), 'text')
}

function compared(page: Exposition): Family[] {
  return [...page.families.values()].filter(({ name }) => !notCompared.test(name))
}

/** Labels that tell nothing are as good as none, and newer versions of the exporter say more of a disk. */
function identity({ name, labels }: Sample): string {
  const told = Object.entries(labels).filter(([label, value]) => value !== '' && label !== 'rotational')
  return `${name}${JSON.stringify(told.sort())}`
}

function samplesOf(families: Iterable<Family>): Map<string, number> {
  const found = new Map<string, number>()
  for (const { samples } of families) for (const sample of samples) found.set(identity(sample), sample.value)
  return found
}

test('families, types, series and values are those of the exporter', { skip: withoutExporter }, async t => {
  const missing = new Set<string>()
  const mistyped = new Set<string>()
  const absent = new Map<string, number>()
  const wrong = new Map<string, string>()
  let series = 0
  let found = 0
  let values = 0
  let right = 0
  for (let round = 0; round < rounds; round++) {
    const before = await read(peer)
    const ours = await read(own)
    const later = await read(peer)
    for (const { name, type } of compared(before)) {
      const same = ours.families.get(name)
      if (same === undefined) missing.add(name)
      else if (same.type !== type) mistyped.add(`${name}: ${same.type}, and it is a ${type}`)
    }
    const readings = samplesOf(compared(ours))
    const first = samplesOf(compared(before))
    const second = samplesOf(compared(later))
    for (const [key, value] of first) {
      // A device or mount may go while the three are read.
      const after = second.get(key)
      if (after === undefined) continue
      series++
      const reading = readings.get(key)
      if (reading === undefined) {
        absent.set(key, value)
        continue
      }
      found++
      // These are of the exporter's own process, or of a reading at another time.
      if (/^(process_|node_time_seconds|node_scrape_)/.test(key)) continue
      values++
      if (reading >= Math.min(value, after) && reading <= Math.max(value, after)) right++
      else wrong.set(key, `${reading}, and it was ${value} before and ${after} after`)
    }
  }
  t.diagnostic(
    `${series / rounds} series, ${(100 * found) / series} % found, ${(100 * right) / values} % of values between`,
  )
  assert.deepEqual([...missing], [], 'families are missing')
  assert.deepEqual([...mistyped], [], 'families have another type')
  assert.ok(series > 1000, `only ${series} series were compared`)
  assert.ok(
    found / series >= 0.995,
    `series are missing: ${JSON.stringify([...absent].slice(0, 20), null, 1)}`,
  )
  assert.ok(right / values >= 0.99, `values differ: ${JSON.stringify([...wrong].slice(0, 20), null, 1)}`)
})

test('the same collectors succeed', { skip: withoutExporter }, async () => {
  const success = (page: Exposition) =>
    new Map(
      page.families
        .get('node_scrape_collector_success')!
        .samples.map(({ labels, value }) => [labels.collector, value]),
    )
  const theirs = success(await read(peer))
  const ours = success(await read(own))
  const differing = [...theirs].filter(([name, value]) => ours.get(name) !== value)
  assert.deepEqual(differing, [])
})
