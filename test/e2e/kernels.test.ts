// owns: load
// The agent on Debian's kernels, each in a machine of its own: what of it works there is a table of docs/kernels.md,
// each cell of it from a run. UPDATE_GOLDEN=1 writes the tables.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, type TestContext, test } from 'node:test'
import { jsonSchema } from '../../src/config/json-schema.ts'
import { findAsset } from '../../src/kernel/assets.ts'
import { table } from '../../src/program/doctor/table.ts'
import { backends } from '../../src/signals/capture/index.ts'
import { firstKernel, madeOf, order } from '../helpers/bpf-needs.ts'
import { type Guest, type GuestOptions, withoutGuest } from '../helpers/guest.ts'
import { KernelFiles, measureBuffers, measureKernel, startKernel } from '../helpers/kernel-guest.ts'
import type { KernelReport } from '../helpers/kernel-report.ts'
import {
  blockOf,
  cellsOf,
  complaints,
  kernels,
  type Measured,
  markdown,
  matchesMeasured,
  requestsCell,
  rows,
  type Suite,
  takesSock,
  writeBlock,
} from '../helpers/kernel-table.ts'
import { nativeOrThrow } from '../helpers/native.ts'

const skip = withoutGuest
/** An emulated processor that shares the host's with others takes its time. */
const timeout = 1_800_000
const suites = Object.keys(kernels) as Suite[]
const update = process.env.UPDATE_GOLDEN === '1'

/** What the schema accepts for `agent.ebpf.backend`. */
const known = JSON.stringify(jsonSchema())
const unbuilt = ['fentry', 'kprobe'].filter(name => !backends.some(each => each.name === name))

/** Bodies of the tables by the name of their block. */
const measured = {
  kernels: new Map<Suite, string[]>(),
  notes: [] as string[][],
  restricted: [] as string[][],
}

/** Capabilities that the table of needs names. */
const capabilities = [...new Set(table.flatMap(({ capabilities = [] }) => capabilities))]
const caps = capabilities.map(name => `+${name.toLowerCase()}`).join(',')
const asRoot = { wrapper: [], user: 0 }
const nobody = 65_534
/** As the unit runs it. */
const withoutRoot = [
  ...['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'],
  ...[`--inh-caps=-all,${caps}`, `--ambient-caps=-all,${caps}`, `--bounding-set=-all,${caps}`],
]

interface Restriction {
  readonly name: string
  readonly parameters?: readonly string[]
  readonly before?: string
  readonly wrapper?: readonly string[]
}

const restrictions: readonly Restriction[] = [
  { name: '`lockdown=integrity`', parameters: ['lockdown=integrity'] },
  { name: '`lockdown=confidentiality`', parameters: ['lockdown=confidentiality'] },
  {
    name: 'no root, `kernel.unprivileged_bpf_disabled=1`',
    // Debian's kernels begin with a perf_event_paranoid of 3.
    before: 'cd /proc/sys/kernel; echo 1 >unprivileged_bpf_disabled; echo 2 >perf_event_paranoid',
    wrapper: withoutRoot,
  },
  ...[3, 4].map(level => ({
    name: `no root, \`kernel.perf_event_paranoid=${level}\``,
    before: `echo ${level} >/proc/sys/kernel/perf_event_paranoid`,
    wrapper: withoutRoot,
  })),
]

let files: KernelFiles
before(async () => {
  if (!skip) files = await KernelFiles.make()
})
after(() => {
  files?.close()
  if (skip || !update) return
  writeBlock('kernels', kernelsTable())
  writeBlock('notes', markdown(noteHead, measured.notes))
  writeBlock('restricted', markdown(restrictedHead, measured.restricted))
})

const noteHead = ['kernel', 'back end', 'until it answers', 'resident, with everything on']
const restrictedHead = ['on 6.12', 'requests', 'profiles', '`svc doctor` complains of']

function kernelsTable(): string {
  const names = [...rows.map(({ name }) => name), ...unbuilt.map(name => `\`${name}\``)]
  const body = names.map((name, i) => [
    name,
    ...suites.map(suite => (i < rows.length ? (measured.kernels.get(suite)?.[i] ?? '') : 'not built')),
  ])
  return markdown(['', ...Object.values(kernels)], body)
}

/**
 * Measures in a machine of its own; a second and third time where that ends by itself, as the emulator, unlike
 * processors, makes a mistake now and then where a kernel changes its own code. What svc breaks, it breaks each time.
 */
async function inMachine<T>(
  t: TestContext,
  options: Pick<GuestOptions, 'kernelOf' | 'parameters'>,
  measure: (guest: Guest) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    let guest: Guest | undefined
    try {
      guest = await startKernel(files, options)
      return await measure(guest)
    } catch (error) {
      if (attempt === 3 || !/the guest has ended/.test(String(error))) throw error
      t.diagnostic(`attempt ${attempt}: ${String(error).slice(0, 2000)}`)
    } finally {
      await guest?.stop()
    }
  }
}

const kernelOf = (suite: Suite) => (suite === 'own' ? {} : { kernelOf: suite })

function note(backend: string, { release, startMs, rssKb }: KernelReport): void {
  const seconds = (startMs / 1000).toFixed(0)
  measured.notes.push([release, `\`${backend}\``, `${seconds} s`, `${Math.round(rssKb / 1024)} MiB`])
}

for (const [column, suite] of suites.entries())
  test(`what works on the kernel of ${suite} is what docs/kernels.md says`, { skip, timeout }, async t => {
    const seen = await inMachine(t, kernelOf(suite), async (guest): Promise<Measured> => {
      const auto = await measureKernel(guest, { backend: 'auto', what: 'all', ...asRoot })
      const syscalls = takesSock(auto)
        ? await measureKernel(guest, { backend: 'syscalls', what: 'requests', ...asRoot })
        : auto
      return { auto, syscalls, buffers: await measureBuffers(guest, 8001, 'perf') }
    })
    assert.equal(seen.auto.failed, undefined)
    // Whatever a kernel lacks, it is a warning and no error.
    assert.deepEqual([...seen.auto.errors, ...seen.syscalls.errors], [])
    if (takesSock(seen.auto)) note('sock', seen.auto)
    note('syscalls', seen.syscalls)
    const cells = rows.map(({ cell }) => cell(seen))
    measured.kernels.set(suite, cells)
    if (update) return
    const documented = cellsOf(blockOf('kernels')).map(row => row[column + 1]!)
    const wrong = cells.flatMap((cell, i) =>
      matchesMeasured(documented[i]!, cell)
        ? []
        : [{ row: rows[i]!.name, documented: documented[i], measured: cell }],
    )
    assert.deepEqual(wrong, [])
  })

for (const [row, { name, parameters = [], before = 'true', wrapper = [] }] of restrictions.entries())
  test(`what works with ${name} is what docs/kernels.md says`, { skip, timeout }, async t => {
    const seen = await inMachine(t, { kernelOf: 'trixie', parameters }, async guest => {
      await guest.run(before)
      const user = wrapper.length > 0 ? nobody : 0
      return measureKernel(guest, { backend: 'auto', what: 'doctor', wrapper, user })
    })
    assert.deepEqual(seen.errors, [])
    const profiles = seen.degraded.filter(({ subsystem }) => subsystem === 'profiles')
    const cells = [
      name,
      requestsCell(seen),
      profiles.length === 0 ? 'yes' : `limited: ${profiles.map(({ reason }) => reason).join('; ')}`,
      complaints(seen),
    ]
    measured.restricted[row] = cells
    if (!update) assert.deepEqual(cells, cellsOf(blockOf('restricted'))[row])
  })

test('the tables have a row for each feature and back end, and a cell for each kernel', () => {
  const cells = cellsOf(blockOf('kernels'))
  assert.deepEqual(
    cells.map(([name]) => name),
    [...rows.map(({ name }) => name), ...unbuilt.map(name => `\`${name}\``)],
  )
  for (const [name, ...found] of cells) {
    assert.equal(found.length, suites.length, name)
    for (const cell of found) assert.notEqual(cell, '', name)
  }
  assert.deepEqual(
    cellsOf(blockOf('restricted')).map(([name]) => name),
    restrictions.map(({ name }) => name),
  )
})

/** The objects that are loaded, in the order of the kernels that know what they are made of. */
function objectsTable(): string {
  const native = nativeOrThrow()
  const files = ['', 'old/', 'perf/'].flatMap(folder =>
    ['host', 'net', 'process', 'profile', 'sock', 'syscalls', 'syscount'].map(
      name => `${folder}${name}.bpf.o`,
    ),
  )
  const body = files.flatMap(file => {
    const path = findAsset(file)
    if (path === undefined) return []
    const { since, because } = firstKernel(madeOf(native, file, readFileSync(path)))
    return [{ file, since, because }]
  })
  body.sort((a, b) => order(a.since) - order(b.since))
  return markdown(
    ['object', 'Linux', 'which brought'],
    body.map(({ file, since, because }) => [
      `\`${file}\``,
      since,
      because.map(each => `\`${each}\``).join(', '),
    ]),
  )
}

test('the table of what programs are made of is that of the objects', () => {
  const wanted = objectsTable()
  if (update) writeBlock('made', wanted)
  else assert.equal(blockOf('made'), wanted)
})

test('a cell with a count holds for a run that missed others, and no cell for a worse one', () => {
  for (const same of ['yes', 'ready', 'not ready: it was refused']) assert.ok(matchesMeasured(same, same))
  assert.ok(matchesMeasured('no: 11 of 12 sides of requests', 'no: client GET 200'))
  assert.ok(matchesMeasured('limited: 35 of 40 requests are one trace', 'yes'))
  assert.ok(!matchesMeasured('limited: 35 of 40 requests are one trace', 'no: nothing'))
  assert.ok(!matchesMeasured('yes', 'limited: 35 of 40 requests are one trace'))
  assert.ok(!matchesMeasured('no: it was refused', 'yes'))
})

test('the table calls built what is built', () => {
  const cells = cellsOf(blockOf('kernels'))
  for (const { name } of backends) {
    const row = cells.find(([first]) => first!.startsWith(`\`${name}\`: N requests`))
    assert.ok(row?.includes('yes'), `${name} works on no kernel`)
  }
  for (const name of unbuilt) {
    assert.ok(known.includes(`"${name}"`), `agent.ebpf.backend does not know ${name}`)
    const row = cells.find(([first]) => first === `\`${name}\``)
    assert.ok(
      row?.slice(1).every(cell => cell === 'not built'),
      name,
    )
  }
})
