import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { Profile as Pprof } from 'pprof-format'
import * as arbitrary from '../../../test/helpers/otlp-arbitrary.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Frame, Mapping, Profile, Sample } from '../../foundation/model/profile.ts'
import { profileToPprof } from './pprof-profile.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-pprof-'))
after(() => rmSync(directory, { recursive: true, force: true }))

const runs = soak ? 2000 : 100

interface Read {
  readonly pprof: Pprof
  text(id: number | bigint): string
}

/** What a reader that is not ours makes of it. */
async function read(profile: Profile, comments?: readonly string[]): Promise<Read> {
  const pprof = Pprof.decode(gunzipSync(await profileToPprof(profile, comments)))
  return { pprof, text: id => pprof.stringTable.strings[Number(id)]! }
}

/** Samples with all references resolved. */
function samplesOf({ pprof, text }: Read): unknown[] {
  const at = <T>(list: readonly T[], id: number | bigint) => list[Number(id) - 1]
  return pprof.sample.map(({ locationId, value, label }) => ({
    frames: locationId.map(id => {
      const { id: own, mappingId, address, line } = at(pprof.location, id)!
      assert.equal(own, id)
      const code = at(pprof.function, line[0]!.functionId)!
      const mapping = at(pprof.mapping, mappingId)
      return {
        name: text(code.name),
        systemName: text(code.systemName),
        file: text(code.filename),
        line: Number(line[0]!.line),
        address: Number(address),
        mapping: mapping && [
          text(mapping.filename),
          text(mapping.buildId),
          Number(mapping.memoryStart),
          Number(mapping.memoryLimit),
          Number(mapping.fileOffset),
        ],
      }
    }),
    value: value.map(Number),
    labels: label.map(({ key, str, num }) => [text(key), Number(str) > 0 ? text(str) : Number(num)]),
  }))
}

function want({ frames, value, attributes, link }: Sample): unknown {
  return {
    frames: frames.map(({ name, systemName = '', file, line, address = 0, mapping }) => ({
      name,
      systemName,
      file,
      line,
      address,
      mapping: mapping && [
        mapping.path,
        mapping.buildId || mapping.hash,
        mapping.start,
        mapping.limit,
        mapping.offset,
      ],
    })),
    value: [value],
    labels: [
      ...Object.entries(attributes.toObject()).map(([key, value]) => [
        key,
        typeof value === 'number' ? value : Array.isArray(value) ? value.join(', ') || 0 : String(value) || 0,
      ]),
      ...(link
        ? [
            ['trace_id', Buffer.from(link.traceId).toString('hex')],
            ['span_id', Buffer.from(link.spanId).toString('hex')],
          ]
        : []),
    ],
  }
}

test('a profile comes back from pprof with its stacks, files, labels and times', async () => {
  await fc.assert(
    fc.asyncProperty(arbitrary.profile, async profile => {
      const found = await read(profile)
      assert.deepEqual(samplesOf(found), profile.samples.map(want))
      const { pprof } = found
      assert.equal(BigInt(pprof.timeNanos), BigInt(Math.round(profile.startUs)) * 1000n)
      assert.equal(Number(pprof.durationNanos), profile.durationUs * 1000)
      assert.equal(Number(pprof.period), profile.period ?? 0)
      assert.equal(new Set(pprof.stringTable.strings).size, pprof.stringTable.strings.length)
    }),
    { numRuns: runs },
  )
})

const program: Mapping = {
  path: '/usr/bin/shop',
  buildId: 'a1b2c3d4e5',
  hash: '00112233445566778899aabbccddeeff',
  start: 0x1000,
  limit: 0x9000,
  offset: 0x1000,
}
const stripped: Mapping = { ...program, path: '/usr/lib/libx.so', buildId: '' }

const frames: Frame[] = [
  { name: '[no symbols]', file: '', line: 0, mapping: stripped, address: 0x1234, type: 'native' },
  {
    name: 'shop::pay(int)',
    systemName: '_ZN4shop3payEi',
    file: 'pay.cc',
    line: 7,
    mapping: program,
    address: 0x2000,
  },
  { name: 'vector<int>::push(operator[])', file: '', line: 0, mapping: program, address: 0x3000 },
  { name: 'handler', file: '/app/shop.py', line: 12, type: 'cpython' },
]

const cpu: Profile = {
  kind: 'cpu',
  unit: 'nanoseconds',
  startUs: 1_763_750_000_123_457,
  durationUs: 10_000_000,
  period: 10_101_010,
  samples: [
    { frames, value: 30_000_000, attributes: Attributes.of({ 'thread.name': 'worker', 'thread.id': 77 }) },
    { frames: frames.slice(2), value: 10_000_000, attributes: new Attributes() },
  ],
}

test('a file of code says whether names are known, so that a reader looks only where they are not', async () => {
  const { pprof, text } = await read(cpu, ['service.name=shop'])
  assert.deepEqual(
    pprof.mapping.map(({ filename, hasFunctions, hasFilenames, hasLineNumbers }) => [
      text(filename),
      hasFunctions,
      hasFilenames,
      hasLineNumbers,
    ]),
    [
      ['/usr/lib/libx.so', false, false, false],
      ['/usr/bin/shop', true, true, true],
    ],
  )
  assert.deepEqual(pprof.comment.map(text), ['service.name=shop'])
  assert.deepEqual(
    [pprof.sampleType[0]!, pprof.periodType!].map(({ type, unit }) => [text(type), text(unit)]),
    [
      ['cpu', 'nanoseconds'],
      ['cpu', 'nanoseconds'],
    ],
  )
})

test("Go's tool reads the same", async () => {
  const go = (file: string, ...options: string[]) =>
    execFileSync('go', ['tool', 'pprof', '-symbolize=none', ...options, file], {
      encoding: 'utf8',
      env: { ...process.env, HOME: directory },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  const file = join(directory, 'cpu.pb.gz')
  writeFileSync(file, await profileToPprof(cpu, ['service.name=shop']))
  const raw = go(file, '-raw')
  assert.match(raw, /PeriodType: cpu nanoseconds\nPeriod: 10101010\n/)
  assert.match(raw, /Duration: 10s?\b/)
  assert.match(raw, /cpu\/nanoseconds\[dflt\]\n\s+30000000: 1 2 3 4\s*\n\s+thread\.name:\[worker\]/)
  assert.match(raw, /thread\.id:\[77/)
  assert.match(raw, /1: 0x1234 M=1 \[no symbols\] :0/)
  assert.match(raw, /2: 0x2000 M=2 shop::pay\(int\) pay\.cc:7(:0)? s=0\(_ZN4shop3payEi\)/)
  assert.match(raw, /4: 0x0 handler \/app\/shop\.py:12/)
  assert.match(raw, /1: 0x1000\/0x9000\/0x1000 \/usr\/lib\/libx\.so 00112233445566778899aabbccddeeff/)
  assert.match(raw, /2: 0x1000\/0x9000\/0x1000 \/usr\/bin\/shop a1b2c3d4e5 \[FN\]\[FL\]\[LN\]/)
  const top = go(file, '-top', '-cum')
  assert.match(top, /40ms\s+100%\s+handler/)
  assert.match(top, /vector<int>::push\(operator\[\]\)/)
  assert.match(go(file, '-comments'), /service\.name=shop/)
})

test('a profile without samples is one that readers open', async () => {
  const { pprof } = await read({ ...cpu, samples: [] })
  assert.deepEqual([pprof.sample.length, pprof.sampleType.length], [0, 1])
})

test('others have their turn while a large profile is encoded', async () => {
  const stack = Array.from({ length: 40 }, (_, i) => ({ name: `f${i}`, file: '', line: 0 }))
  const samples = Array.from({ length: 500 }, (_, i) => ({
    frames: stack.slice(i % 40),
    value: 1,
    attributes: new Attributes(),
  }))
  let turns = 0
  const state = { done: false }
  const count = () => {
    turns++
    if (!state.done) setImmediate(count)
  }
  const encoded = profileToPprof({ ...cpu, samples })
  setImmediate(count)
  const { length } = Pprof.decode(gunzipSync(await encoded)).sample
  state.done = true
  assert.equal(length, 500)
  assert.ok(turns > 1)
})
