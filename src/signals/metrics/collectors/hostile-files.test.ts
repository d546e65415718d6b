// owns: host
// Every collector over files that no kernel writes: whatever they hold, it ends in time, fails in words if it fails, and
// the page is one that Prometheus reads.

import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { hostTree, readWith } from '../../../../test/helpers/collector.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { parseExposition } from '../../../foundation/lib/exposition-text.ts'
import type { Tree } from '../../../foundation/model/host.ts'
import type { Keys } from '../../../foundation/schema/tree.ts'
import type { Collector, Env } from './collector.ts'
import { collectors, extraCollectors } from './index.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-hostile-')))
cpSync(hostTree, root, { recursive: true, verbatimSymlinks: true })
after(() => rmSync(root, { recursive: true, force: true }))

const units: readonly Collector<Keys>[] = [...collectors, ...extraCollectors]

/** What stands for a word: numbers that are none or too large, bytes that are no text, nothing. */
const words = [
  ...['', '0', '-1', '-0', 'NaN', 'Inf', '-Infinity', '1e999', '1e', '0x', '0xffffffffffffffffff', '+', '.'],
  ...[
    '18446744073709551616',
    '-9223372036854775809',
    '9'.repeat(400),
    '1_000',
    '٣',
    '"',
    '\\',
    '{}',
    '%',
    ':',
    '/',
  ],
  ...[
    '\0',
    '\r',
    '\t',
    '\x7f',
    '\xff\xfe',
    '\xc3',
    '\xed\xa0\x80',
    '../../etc/passwd',
    '__proto__',
    'constructor',
  ],
  ...['-', '\n', '\n\n', ' 1 1 1', 'x'.repeat(300)],
].map(word => Buffer.from(word, /[٣]/.test(word) ? 'utf8' : 'latin1').toString('latin1'))

type Change = readonly [kind: string, at: number, word: string]

const change: fc.Arbitrary<Change> = fc.tuple(
  fc.oneof(
    {
      arbitrary: fc.constantFrom('word', 'word', 'word', 'drop', 'insert', 'line', 'twice', 'cut', 'bytes'),
      weight: 30,
    },
    { arbitrary: fc.constant('long'), weight: 1 },
  ),
  fc.nat(1_000_000),
  fc.oneof(fc.constantFrom(...words), fc.string({ unit: 'binary-ascii', maxLength: 8 })),
)

/** `text` is of Latin-1, so that it holds any bytes. */
function changed(text: string, [kind, at, word]: Change): string {
  const lines = text.split('\n')
  const line = at % lines.length
  const found = [...text.matchAll(/[^\s:=]+/g)]
  const spot = found[at % found.length]
  switch (kind) {
    case 'word':
    case 'drop':
      if (spot === undefined) return word
      return (
        text.slice(0, spot.index) + (kind === 'drop' ? '' : word) + text.slice(spot.index + spot[0].length)
      )
    case 'insert':
      return text.slice(0, at % (text.length + 1)) + word + text.slice(at % (text.length + 1))
    case 'line':
      return lines.toSpliced(line, 1).join('\n')
    case 'twice':
      return lines.toSpliced(line, 0, lines[line]!).join('\n')
    case 'cut':
      return text.slice(0, at % (text.length + 1))
    case 'bytes':
      return word.repeat(1 + (at % 64))
    default:
      return lines
        .toSpliced(line, 1, `${lines[line]}${`${word} `.repeat(1_000_000 / (word.length + 1))}`)
        .join('\n')
  }
}

/** The unit with a note of what it asks of the trees, and of what it throws. */
function watched(unit: Collector<Keys>, files: Set<string>, thrown: unknown[]): Collector<Keys> {
  const noting = (tree: Tree, name: string): Tree =>
    new Proxy(tree, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target)
        if (typeof value !== 'function') return value
        return (path: string, ...rest: unknown[]) => {
          if (typeof path === 'string') files.add(join(root, name, path))
          return value.call(target, path, ...rest)
        }
      },
    })
  return {
    ...unit,
    start(options: never, env: Env) {
      const { host } = env
      const trees = {
        proc: noting(host.proc, 'proc'),
        sys: noting(host.sys, 'sys'),
        root: noting(host.root, 'rootfs'),
        udev: noting(host.udev, 'udev'),
      }
      const reader = unit.start(options, { ...env, host: trees as never })
      const noted = (error: unknown) => {
        thrown.push(error)
        throw error
      }
      return {
        ...(reader.wait ? { wait: (signal: AbortSignal) => reader.wait!(signal).catch(noted) } : {}),
        close: () => reader.close?.(),
        collect(readings) {
          try {
            reader.collect(readings)
          } catch (error) {
            noted(error)
          }
        },
      }
    },
  }
}

/** Files that are there, and belong to the copy also where links lead. */
function owned(files: ReadonlySet<string>): string[] {
  return [...files]
    .filter(file => existsSync(file) && statSync(file).isFile() && realpathSync(file).startsWith(root))
    .sort()
}

/** Mistakes of code, not faults of a file that it found. */
const isMistake = (error: unknown) =>
  !(error instanceof Error) ||
  [TypeError, RangeError, ReferenceError, SyntaxError, assert.AssertionError].some(
    kind => error instanceof kind,
  )

let tried = 0
for (const unit of units)
  test(`${unit.name}: no content of a file is more than a failure, and no page is broken by it`, async () => {
    const asked = new Set<string>()
    await readWith(watched(unit, asked, []), {}, root)
    const files = owned(asked)
    if (files.length === 0) return
    tried++
    const good = files.map(file => readFileSync(file))
    const changes = fc.array(fc.tuple(fc.nat(files.length - 1), change), { minLength: 1, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(changes, async all => {
        const contents = new Map<number, string>()
        for (const [file, each] of all)
          contents.set(file, changed(contents.get(file) ?? good[file]!.toString('latin1'), each))
        for (const [file, content] of contents) writeFileSync(files[file]!, content, 'latin1')
        const thrown: unknown[] = []
        const started = performance.now()
        try {
          const { lines } = await readWith(watched(unit, new Set(), thrown), {}, root)
          const mistake = thrown.find(isMistake)
          if (mistake !== undefined) throw mistake
          const text = lines.length === 0 ? '' : `${lines.join('\n')}\n`
          for (const { name, samples } of parseExposition(Buffer.from(text), 1_000_000))
            for (const { value } of samples) assert.ok(!Number.isNaN(value), `${name} is no number`)
          assert.doesNotMatch(text, /="(?:undefined|\[object \w+\])"/)
        } finally {
          for (const file of contents.keys()) writeFileSync(files[file]!, good[file]!)
        }
        // Far above what a busy machine takes: a megabyte read in the square of its length takes minutes.
        assert.ok(performance.now() - started < 5_000, 'it took too long')
      }),
      { numRuns: soak ? 2_000 : 16 },
    )
  })

test('most collectors read files', () => {
  assert.ok(tried > 60, String(tried))
})
