// owns: host
// The claim to be a drop-in replacement, held against the real exporter on this host: what it serves is served, with the
// same types, series and values.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { exporterProgram, withoutExporter } from '../helpers/exporter-peer.ts'
import { ExporterProcess } from '../helpers/exporter-process.ts'
import { type Exposition, type Family, parseExposition, type Sample } from '../helpers/exposition.ts'
import { soak } from '../helpers/soak.ts'

const rounds = soak ? 20 : 4

/** The package is of another version, whose default leaves out fewer disks. */
const both = ['--collector.diskstats.device-exclude=^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\\d+n\\d+p)\\d+$']

/** What the peer says of itself or of its own runtime, and what is no reading of the host. */
const notCompared = /^(go_|promhttp_|node_exporter_build_info$|node_scrape_collector_duration_seconds$)/

let peer: ExporterProcess
let own: ExporterProcess

/** The package has another default for it. */
const textfiles = mkdtempSync(join(tmpdir(), 'svc-textfile-'))

before(async () => {
  if (withoutExporter !== false) return
  writeFileSync(
    join(textfiles, 'a.prom'),
    '# TYPE backup_seconds summary\nbackup_seconds{quantile="0.5"} 1e9\n',
  )
  both.push(`--collector.textfile.directory=${textfiles}`)
  // The package turns on a collector that the exporter has off, and this host has no systemd to ask.
  peer = await ExporterProcess.start(exporterProgram, [...both, '--no-collector.systemd'])
  own = await ExporterProcess.own(both)
})
after(async () => {
  rmSync(textfiles, { recursive: true })
  await peer?.stop()
  await own?.stop()
})

async function read(exporter: ExporterProcess): Promise<Exposition> {
  return parseExposition(await exporter.page(), 'text')
}

function compared(page: Exposition): Family[] {
  return [...page.families.values()].filter(({ name }) => !notCompared.test(name))
}

/** What newer versions of the exporter say of a disk and of a network device. */
const newer = new Set(['rotational', 'adminstate'])

/** Labels that tell nothing are as good as none. */
function identity({ name, labels }: Sample): string {
  const told = Object.entries(labels).filter(([label, value]) => value !== '' && !newer.has(label))
  return `${name}${JSON.stringify(told.sort())}`
}

type Readings = ReadonlyMap<string, { readonly value: number; readonly type: Family['type'] }>

function readingsOf(page: Exposition): Readings {
  return new Map(
    compared(page).flatMap(({ type, samples }) =>
      samples.map(sample => [identity(sample), { value: sample.value, type }] as const),
    ),
  )
}

test('families, types, series and values are those of the exporter', { skip: withoutExporter }, async t => {
  const missing = new Set<string>()
  const mistyped = new Set<string>()
  const absent = new Set<string>()
  const taken: { readonly before: Readings; readonly ours: Readings; readonly after: Readings }[] = []
  /** Of all readings of the exporter: what a gauge shows between two of them may be more, or less, than both. */
  const least = new Map<string, number>()
  const most = new Map<string, number>()
  for (let round = 0; round < rounds; round++) {
    const before = await read(peer)
    const ours = await read(own)
    const after = await read(peer)
    for (const { name, type } of compared(before)) {
      const same = ours.families.get(name)
      if (same === undefined) missing.add(name)
      else if (same.type !== type) mistyped.add(`${name}: ${same.type}, and it is a ${type}`)
    }
    taken.push({ before: readingsOf(before), ours: readingsOf(ours), after: readingsOf(after) })
    for (const [key, { value }] of [...taken.at(-1)!.before, ...taken.at(-1)!.after]) {
      least.set(key, Math.min(value, least.get(key) ?? value))
      most.set(key, Math.max(value, most.get(key) ?? value))
    }
  }
  const wrong = new Map<string, string>()
  /** What moves by itself can be outside once, by chance. */
  const right = new Set<string>()
  let [series, found] = [0, 0]
  for (const { before, ours, after } of taken)
    for (const [key, { value: first, type }] of before) {
      const second = after.get(key)?.value
      // A device or mount may go while the three are read.
      if (second === undefined) continue
      series++
      const value = ours.get(key)?.value
      if (value === undefined) {
        absent.add(key)
        continue
      }
      found++
      // These are of the exporter's own process, or of a reading at another time.
      if (/^(process_|node_time_seconds|node_scrape_)/.test(key)) continue
      const low = type === 'gauge' ? least.get(key)! : Math.min(first, second)
      const high = type === 'gauge' ? most.get(key)! : Math.max(first, second)
      if (value >= low && value <= high) right.add(key)
      else wrong.set(key, `${value}, and it was from ${low} to ${high}`)
    }
  for (const key of right) wrong.delete(key)
  const share = right.size / (right.size + wrong.size)
  t.diagnostic(
    `${series / rounds} series, ${(100 * found) / series} % found, ${100 * share} % of them with values between`,
  )
  assert.deepEqual([...missing], [], 'families are missing')
  assert.deepEqual([...mistyped], [], 'families have another type')
  assert.ok(series > 200 * rounds, `only ${series} series were compared`)
  assert.ok(found / series >= 0.995, `series are missing: ${[...absent].slice(0, 20).join('\n')}`)
  assert.ok(share >= 0.99, `values differ: ${JSON.stringify([...wrong].slice(0, 20), null, 1)}`)
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
