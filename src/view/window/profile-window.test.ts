import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Frame, Profile, Sample } from '../../foundation/model/profile.ts'
import { resource } from '../../foundation/model/resource.ts'
import type { FlameColumns } from './flame-columns.ts'
import { type FlameOptions, ProfileWindow } from './profile-window.ts'

const always = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY }
const none = new Attributes()
const shop = resource({ 'service.name': 'shop' })
const cart = resource({ 'service.name': 'cart' })
const service = (name: string) => resource({ 'service.name': name })

const known = new Map<string, Frame>()
function frame(name: string): Frame {
  let made = known.get(name)
  if (made === undefined) {
    made = { name, file: '/bin/x', line: 1, type: 'native' }
    known.set(name, made)
  }
  return made
}

/** `outermost;…;leaf`. */
function sample(stack: string, value: number): Sample {
  const frames = stack === '' ? [] : stack.split(';').reverse().map(frame)
  return { frames, value, attributes: none }
}

function profile(samples: readonly Sample[], atMs = 0, more: Partial<Profile> = {}): Profile {
  return { kind: 'cpu', unit: 'nanoseconds', startUs: atMs * 1000, durationUs: 10_000_000, samples, ...more }
}

function open(maxBytes = 1 << 20) {
  const clock = { ms: 0 }
  const window = new ProfileWindow({ maxBytes, windowMs: 900_000, now: () => clock.ms })
  const flame = (options: Partial<FlameOptions> = {}) =>
    window.flame({ kind: 'cpu', service: '', limit: 1e6, ...always, ...options })
  return { window, clock, flame }
}

/** Stacks with a value of their own, as lines that can be compared. */
function folded(columns: FlameColumns): Record<string, number> {
  const paths: string[] = []
  const lines: Record<string, number> = {}
  for (const [i, name] of columns.name.entries()) {
    const above = columns.parent[i]!
    paths[i] = above < 0 ? '' : above === 0 ? columns.names[name]! : `${paths[above]};${columns.names[name]}`
    if (columns.self[i]! > 0) lines[paths[i]!] = columns.self[i]!
  }
  return lines
}

/** What every tree has to be. */
function checkShape(columns: FlameColumns): void {
  const { parent, self, sum, base } = columns
  const below = parent.map(() => 0)
  const last = new Map<number, number>()
  for (let i = parent.length - 1; i > 0; i--) {
    assert.ok(parent[i]! < i && parent[i]! >= 0)
    below[parent[i]!]! += sum[i]!
    assert.ok(sum[i]! >= (last.get(parent[i]!) ?? 0), 'the largest first')
    last.set(parent[i]!, sum[i]!)
  }
  let cut = 0
  for (let i = 0; i < parent.length; i++) cut += sum[i]! - self[i]! - below[i]!
  assert.equal(parent[0], -1)
  assert.equal(cut, columns.cut)
  assert.equal(sum[0], columns.total)
  assert.ok(base.length === 0 || base.length === parent.length)
  for (const column of [columns.name, columns.file, columns.type]) assert.equal(column.length, parent.length)
}

test('profiles of a window are one tree, by service', () => {
  const { window, flame } = open()
  window.add(shop, profile([sample('main;a', 5), sample('main;b', 7), sample('main', 1), sample('', 2)]))
  window.add(cart, profile([sample('main;a', 3)], 10_000))
  window.add(shop, profile([sample('main;a', 10)], 10_000))
  const all = flame()
  checkShape(all)
  assert.deepEqual([all.names[all.name[0]!], all.files, all.types], ['all', ['', '/bin/x'], ['', 'native']])
  assert.deepEqual(folded(all), {
    shop: 2,
    'shop;main': 1,
    'shop;main;a': 15,
    'shop;main;b': 7,
    'cart;main;a': 3,
  })
  const one = flame({ service: 'shop' })
  checkShape(one)
  assert.equal(one.names[one.name[0]!], 'shop')
  assert.deepEqual(folded(one), { '': 2, main: 1, 'main;a': 15, 'main;b': 7 })
  assert.deepEqual(
    [one.files, one.types],
    [
      ['', '/bin/x'],
      ['', 'native'],
    ],
  )
  assert.deepEqual(folded(flame({ service: 'nobody' })), {})
  assert.deepEqual(folded(flame({ kind: 'memory' })), {})
})

test('an interval counts where its middle lies in between', () => {
  const { window, flame } = open()
  for (const [i, value] of [1, 10, 100].entries()) window.add(shop, profile([sample('a', value)], i * 10_000))
  assert.equal(flame({ fromMs: 10_000, toMs: 20_000 }).total, 10)
  assert.equal(flame({ fromMs: 10_300, toMs: 20_300 }).total, 10)
  assert.equal(flame({ fromMs: 10_000 }).total, 110)
  assert.equal(flame({ toMs: 10_000 }).total, 1)
})

test('a tree is compared with another one, and has what only that has', () => {
  const { window, flame } = open()
  window.add(shop, profile([sample('main;a', 5), sample('main;gone', 9)]))
  window.add(shop, profile([sample('main;a', 6), sample('main;new', 1)], 10_000))
  const columns = flame({ service: 'shop', fromMs: 10_000, base: { fromMs: 0, toMs: 10_000 } })
  checkShape(columns)
  const rows = columns.name.map((name, i) => [columns.names[name], columns.sum[i], columns.base[i]])
  assert.deepEqual(rows, [
    ['shop', 7, 14],
    ['main', 7, 14],
    ['a', 6, 5],
    ['new', 1, 0],
    ['gone', 0, 9],
  ])
  assert.deepEqual([columns.total, columns.base_total], [7, 14])
})

test('counts of samples are time by what each stands for', () => {
  const { window, flame } = open()
  window.add(shop, profile([sample('a', 3)], 0, { unit: 'count', period: 1000 }))
  window.add(shop, profile([sample('a', 2)], 0, { unit: 'count', period: 500 }))
  window.add(shop, profile([sample('a', 4096)], 0, { kind: 'memory', unit: 'bytes', period: 4096 }))
  assert.equal(flame().total, 4000)
  assert.equal(flame({ kind: 'memory' }).total, 4096)
  assert.deepEqual(window.kinds(), ['cpu', 'memory'])
  assert.deepEqual(window.overview('cpu', ''), {
    intervals: [{ fromMs: 0, toMs: 10_000, value: 4000 }],
    services: [{ name: 'shop', value: 4000 }],
  })
})

test('intervals and services are told with their sums', () => {
  const { window } = open()
  for (let i = 0; i < 3; i++) {
    window.add(shop, profile([sample('a', 1)], i * 10_000))
    window.add(cart, profile([sample('a', 10)], i * 10_000))
  }
  const values = (name: string) => window.overview('cpu', name).intervals.map(({ value }) => value)
  assert.deepEqual(values(''), [11, 11, 11])
  assert.deepEqual(values('shop'), [1, 1, 1])
  assert.deepEqual(values('nobody'), [])
  assert.deepEqual(window.overview('cpu', 'shop').services, [
    { name: 'cart', value: 30 },
    { name: 'shop', value: 3 },
  ])
})

test('what lacks a name says why, and a stack counts once to each reason', () => {
  const { window, flame } = open()
  window.add(
    service('[odd]'),
    profile([
      sample('main;[x: stripped];[x: stripped];read', 5),
      sample('main;[x: stripped];[y: stripped];[x: stripped]', 7),
      sample('main;[no mapping]', 1),
      sample('main;f', 100),
    ]),
  )
  assert.deepEqual(flame().missing, [
    { reason: 'x: stripped', value: 12 },
    { reason: 'y: stripped', value: 7 },
    { reason: 'no mapping', value: 1 },
  ])
})

test('only the largest nodes are told, with their parents, and the sum of the others', () => {
  const { window, flame } = open()
  const samples = Array.from({ length: 100 }, (_, i) => sample(`main;f${i};g${i};h${i}`, i + 1))
  window.add(shop, profile(samples))
  for (const limit of [1, 2, 3, 50, 299, 303, 304]) {
    const columns = flame({ limit })
    checkShape(columns)
    assert.equal(columns.parent.length, Math.min(limit, 303))
    assert.equal(columns.total, 5050)
  }
  assert.equal(flame({ limit: 303 }).cut, 0)
  assert.equal(flame({ limit: 2 }).cut, 5050)
})

test('what is older than the window is gone, with all that it alone had', () => {
  const { window, clock, flame } = open()
  const empty = window.bytes
  window.add(shop, profile([sample('a;b;c', 1)]))
  const { version } = window
  clock.ms = 910_000
  assert.equal(flame().total, 1)
  assert.equal(window.version, version)
  clock.ms = 910_001
  assert.notEqual(window.version, version)
  assert.equal(flame().total, 0)
  assert.deepEqual([window.size, window.nodes, window.bytes], [0, 1, empty])
  assert.deepEqual(window.kinds(), [])
})

test('samples that say nothing are passed over', () => {
  const { window } = open()
  for (const value of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60]) {
    window.add(shop, profile([sample('a', value)]))
    window.add(shop, profile([]))
  }
  assert.deepEqual([window.size, window.nodes], [0, 1])
})

test('large values, deep stacks and nameless things are kept as they are', () => {
  const { window, flame } = open()
  window.add(resource({}), profile([sample('a', Number.MAX_SAFE_INTEGER), sample('b', 2 ** 31)]))
  assert.deepEqual(folded(flame()), { 'unknown;a': Number.MAX_SAFE_INTEGER, 'unknown;b': 2 ** 31 })
  const frames = Array.from({ length: 3000 }, (_, i) => frame(`d${i}`))
  window.add(shop, profile([{ frames, value: 9, attributes: none }]))
  const deep = flame({ service: 'shop' })
  checkShape(deep)
  assert.equal(deep.parent.length, 513)
  assert.deepEqual([deep.missing[0]?.reason, deep.missing[0]?.value], ['cut: deeper than 512 frames', 9])
})

test('a profile that is too large loses its smallest stacks, and says so', () => {
  const { window, flame } = open(64 * 1024)
  const samples = Array.from({ length: 20_000 }, (_, i) => sample(`m;f${i % 100};g${i}`, i + 1))
  window.add(cart, profile([sample('small', 5)]))
  window.add(shop, profile(samples))
  const columns = flame({ service: 'shop' })
  checkShape(columns)
  assert.equal(columns.total, 200_010_000)
  const lines = folded(columns)
  const cut = Object.keys(lines).find(line => line.startsWith('[cut'))!
  assert.match(cut, /no room for the smallest stacks/)
  assert.equal(columns.missing[0]?.value, lines[cut])
  assert.equal(lines['m;f99;g19999'], 20_000)
  assert.equal(lines['m;f0;g0'], undefined)
  assert.equal(flame({ service: 'cart' }).total, 5)
})

test('the oldest give way, and what is kept is what a plain list would have', () => {
  const names = fc.constantFrom('a', 'b', 'c', '[x]', 'dé', 'a long name '.repeat(20))
  const stack = fc.array(names, { maxLength: 6 }).map(all => all.join(';'))
  const value = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 2 ** 40 }))
  const one = fc.record({
    of: fc.integer({ min: 0, max: 3 }),
    stacks: fc.array(fc.tuple(stack, value), { minLength: 1, maxLength: 40 }),
    unique: fc.integer({ min: 0, max: 30 }),
    stepMs: fc.integer({ min: 0, max: 100_000 }),
  })
  fc.assert(
    fc.property(fc.array(one, { maxLength: 60 }), steps => {
      const { window, clock, flame } = open(64 * 1024)
      const told: { of: number; endMs: number; lines: Map<string, number> }[] = []
      for (const [n, { of, stacks, unique, stepMs }] of steps.entries()) {
        clock.ms += stepMs
        const samples = stacks.map(([text, value]) => sample(text, value))
        for (let i = 0; i < unique; i++) samples.push(sample(`u${n};v${i}`, 1))
        const lines = new Map<string, number>()
        for (const { frames, value } of samples) {
          const line = [`s${of}`, ...frames.map(each => each.name).reverse()].join(';')
          lines.set(line, (lines.get(line) ?? 0) + value)
        }
        told.push({ of, endMs: clock.ms + 10_000, lines })
        window.add(service(`s${of}`), profile(samples, clock.ms))
        assert.ok(window.bytes <= 64 * 1024)
      }
      const kept = told.slice(told.length - window.size)
      assert.ok(kept.length >= Math.min(1, steps.length))
      assert.ok(kept.every(({ endMs }) => endMs >= clock.ms - 900_000))
      for (const wanted of ['', 's0', 's1']) {
        const want: Record<string, number> = {}
        for (const { of, lines } of kept)
          for (const [line, value] of lines) {
            if (wanted !== '' && `s${of}` !== wanted) continue
            const shown = wanted === '' ? line : line.slice(3)
            want[shown] = (want[shown] ?? 0) + value
          }
        const columns = flame({ service: wanted })
        checkShape(columns)
        assert.deepEqual(folded(columns), want)
      }
      clock.ms += 2_000_000
      assert.equal(flame().total, 0)
      assert.deepEqual([window.size, window.nodes], [0, 1])
    }),
    { numRuns: soak ? 1000 : 40 },
  )
})

test('memory stays within its bound, whatever comes', t => {
  const maxBytes = 2 << 20
  const { window, clock, flame } = open(maxBytes)
  let seed = 1
  const next = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  const rounds = soak ? 2000 : 60
  let samplesSeen = 0
  for (let round = 0; round < rounds; round++) {
    clock.ms += 1000
    const samples: Sample[] = []
    for (let i = 0; i < 1000; i++) {
      const frames: Frame[] = []
      // Half of the frames are of functions that were never seen before.
      for (let depth = next(20); depth >= 0; depth--) {
        const isNew = next(2) === 0
        const name = isNew ? `fn_${round}_${next(500)}` : `lib_${next(300)}`
        frames.push(isNew ? { name, file: `/f/${next(50)}`, line: 0 } : frame(name))
      }
      samples.push({ frames, value: 1 + next(1e6), attributes: none })
    }
    samplesSeen += samples.length
    window.add(service(`s${next(10)}`), profile(samples, clock.ms))
    assert.ok(window.bytes <= maxBytes, `${window.bytes} bytes`)
  }
  const columns = flame()
  checkShape(columns)
  t.diagnostic(
    `${samplesSeen} samples, ${window.size} profiles, ${window.nodes} nodes, ${window.bytes} bytes`,
  )
})

test('all memory is taken at the start, but for texts', () => {
  const maxBytes = 8 << 20
  const before = process.memoryUsage().arrayBuffers
  const { window } = open(maxBytes)
  assert.ok(process.memoryUsage().arrayBuffers - before <= maxBytes)
  assert.ok(window.bytes < 2000)
})

test('a tree of 100,000 nodes is made at once', t => {
  const { window, clock, flame } = open(12 << 20)
  const counts = { adds: 0, addMs: 0 }
  for (let i = 0; i < 15; i++) {
    const samples: Sample[] = []
    for (let k = 0; k < 700; k++)
      samples.push(sample(`main;loop;a${k % 20};b${k % 100};c${k};${i % 10};d;e;f;g;h;i;j;k`, k + 1))
    const began = performance.now()
    window.add(service(`s${i}`), profile(samples, clock.ms))
    counts.addMs += performance.now() - began
    counts.adds++
  }
  const began = performance.now()
  const columns = flame({ limit: 200_000 })
  const tookMs = performance.now() - began
  checkShape(columns)
  assert.ok(columns.parent.length > 100_000, `${columns.parent.length} nodes`)
  const limited = performance.now()
  checkShape(flame({ limit: 20_000 }))
  t.diagnostic(
    `${columns.parent.length} nodes in ${tookMs.toFixed(1)} ms, 20,000 of them in ${(performance.now() - limited).toFixed(1)} ms, ${(counts.addMs / counts.adds).toFixed(2)} ms an add, ${window.bytes} bytes`,
  )
})

test('what was kept before the clock was set back by an hour does not outlive what came after it', () => {
  const { window, clock, flame } = open()
  clock.ms = 3_600_000
  window.add(shop, profile([sample('main;a', 5)], clock.ms - 10_000))
  clock.ms = 0
  window.add(shop, profile([sample('main;b', 7)], 0))
  assert.deepEqual(folded(flame()), { 'shop;main;b': 7 })
  clock.ms = 910_001
  assert.equal(window.overview('cpu', '').intervals.length, 0)
})
