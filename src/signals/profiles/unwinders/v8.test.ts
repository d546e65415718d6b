// By hand the same programs were read in Node.js 22.23.3 and 26.9.0 as well:
//
//   Node.js  V8    JSFunction  SharedFunctionInfo        Script  ScopeInfo's
//                  shared      name_or_scope_info script name    header, words
//   20.20.2  11.3  24          16                 32     16      3
//   22.23.3  12.4  32          16                 32     16      3
//   24.21.0  13.6  32          24                 40     16      5
//   26.9.0   14.6  32          24                 40     16      5

import assert from 'node:assert/strict'
import { closeSync, openSync, writeSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { systemNode, withoutNode20 } from '../../../../test/helpers/host-needs.ts'
import { javascriptStack } from '../../../../test/helpers/runtimes/javascript-stack.ts'
import {
  recognised,
  ScriptProgram,
  systemPython,
  withoutPython,
} from '../../../../test/helpers/runtimes/script-program.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import type { Frame } from '../../../foundation/model/profile.ts'
import type { RuntimeFile, RuntimeProcess } from './runtime.ts'
import { readConstants, type V8Constants } from './v8/constants.ts'
import { v8 } from './v8.ts'

const runtimes = [
  { binary: process.execPath, name: `Node.js ${process.versions.node}`, skip: false as const },
  { binary: systemNode, name: "the distribution's Node.js", skip: withoutNode20 },
]

function v8File(binary: string): RuntimeFile {
  const { file } = recognised(v8, binary)
  if (typeof file !== 'object') throw new Error(`${binary}: ${file}`)
  return file
}

function attached(binary: string, program: ScriptProgram): RuntimeProcess {
  const runtime = v8File(binary).attach(program.memory, 0)
  if (typeof runtime === 'string') throw new Error(runtime)
  return runtime
}

/** Frames of a program that says `ready` in a function called `spin`, which does not return. */
async function framesOf(binary: string, name: string, source: string): Promise<Frame[]> {
  const program = await ScriptProgram.start(binary, name, source)
  try {
    await program.stop()
    const runtime = attached(binary, program)
    const frames = javascriptStack(program, runtime, 'spin')
    assert.deepEqual(javascriptStack(program, runtime, 'spin'), frames, 'names are kept')
    return frames.map(frame => ({ ...frame, file: frame.file.replace(program.path, 'SCRIPT') }))
  } finally {
    await program.end()
  }
}

const texts = (frames: readonly Frame[]) => frames.map(({ name, file, line }) => `${name} ${file}:${line}`)

const spin = `function spin() { require('node:fs').writeSync(1, 'ready'); for (let n = 0; ; n++) if (n < 0) return n }`

/** All ways to give a function a name. */
const named = `${spin}
class Übung {
  // A comment of some lines,
  // so that lines count.
  method() { return spin() + 1 }
  static make() { return new Übung().method() }
  #hidden() { return Übung.make() }
  get value() { return this.#hidden() }
}
const arrow = () => new Übung().value
const table = { 'quoted name'() { return arrow() }, ['com' + 'puted']() { return this['quoted name']() } }
table.late = function () { return table.computed() }
async function later() { return table.late() }
function* several() { yield later() }
const bound = function inner(list) { return [...several(list)] }.bind(null)
const 日本 = () => bound()
const made = { ['a name ' + 'that only its object has']() { return 日本() } }
function many() {
  ${Array.from({ length: 90 }, (_, index) => `let v${index} = ${index}`).join('; ')}
  globalThis.kept = () => eval('v1 + v89')
  return Object.values(made)[0]()
}
;[1].forEach(() => many())
`

for (const { binary, name, skip } of runtimes) {
  test(`functions of ${name} have their names, files and lines`, { skip }, async () => {
    const frames = await framesOf(binary, 'some names.cjs', named)
    const own = texts(frames.slice(0, 18))
    assert.deepEqual(own, [
      'spin SCRIPT:1',
      'method SCRIPT:5',
      'make SCRIPT:6',
      '#hidden SCRIPT:7',
      'get value SCRIPT:8',
      'arrow SCRIPT:10',
      'quoted name SCRIPT:11',
      // What is not in the source is not told: V8 says whose it is.
      'table SCRIPT:11',
      'table.late SCRIPT:12',
      'later SCRIPT:13',
      'several SCRIPT:14',
      'next :0',
      'inner SCRIPT:15',
      '日本 SCRIPT:16',
      'made SCRIPT:17',
      'many SCRIPT:18',
      '(anonymous) SCRIPT:23',
      'forEach :0',
    ])
    assert.equal(texts(frames)[18], '(anonymous) SCRIPT:1')
    assert.ok(frames.some(({ file }) => file === 'node:internal/modules/cjs/loader'))
    assert.ok(frames.every(({ type }) => type === 'v8js'))
  })

  test(`a module of ${name} is not named after one of its variables`, { skip }, async () => {
    const source = `import { writeSync } from 'node:fs'
export const exported = 1
let local = 2
export const reader = () => exported + local

export function outer() {
  return spin()
}
function spin() { writeSync(1, 'ready'); for (;;) local = reader() }
outer()
`
    const frames = await framesOf(binary, 'mödule %41.mjs', source)
    assert.deepEqual(texts(frames.slice(0, 3)), ['spin SCRIPT:9', 'outer SCRIPT:6', '(anonymous) SCRIPT:1'])
  })

  test(`code of ${name} that has no file is named all the same`, { skip }, async () => {
    const source = `${spin}
globalThis.spin = spin
const byText = new Function('return spin()')
function byEval() { return eval('(function evaluated() { return byText() })()') }
const vm = require('node:vm')
vm.runInThisContext('function shifted() { return callback() }', { filename: 'given.js', lineOffset: 41 })
const end = '.js'
vm.runInThisContext('function joined() { return shifted() }', { filename: process.argv[1] + '-and-more-of-it' + end })
vm.runInThisContext('function cut() { return joined() }', { filename: 'not this, but/all of that.js'.slice(10) })
vm.runInThisContext('function wide() { return cut() }', { filename: '名前/' + process.argv[1] })
globalThis.callback = byEval
wide()
`
    const frames = texts(await framesOf(binary, 'text.cjs', source))
    assert.equal(frames[1], '(anonymous) :1')
    assert.ok(frames.includes('evaluated :1'))
    assert.ok(frames.includes('byEval SCRIPT:4'))
    const want = [
      'shifted given.js:42',
      'joined SCRIPT-and-more-of-it.js:1',
      'cut but/all of that.js:1',
      'wide 名前/SCRIPT:1',
    ]
    const start = frames.indexOf(want[0]!)
    assert.deepEqual(frames.slice(start, start + 4), want)
  })

  test(`lines of ${name} are counted in large sources of either width`, { skip }, async () => {
    for (const letter of ['x', '語']) {
      const filler = `// ${letter.repeat(60)}\n`.repeat(20_000)
      const source = `${spin}\n${filler}function deep() { return spin() }\n${filler}function deeper() { return deep() }\ndeeper()\n`
      const frames = await framesOf(binary, 'large.cjs', source)
      const want = ['spin SCRIPT:1', 'deep SCRIPT:20002', 'deeper SCRIPT:40003', '(anonymous) SCRIPT:1']
      assert.deepEqual(texts(frames.slice(0, 4)), want)
    }
  })
}

test('a file without V8 is none, and a V8 is told by its symbols', () => {
  assert.equal(recognised(v8, '/bin/sh').file, undefined)
  assert.equal(typeof recognised(v8, process.execPath).file, 'object')
})

test('whatever a pointer points at in a running program, a frame comes of it', async () => {
  const source = `const keep = []
setInterval(() => { for (let n = 0; n < 1000; n++) { keep.push({ f: () => n, s: 'text' + n }); if (keep.length > 9000) keep.length = 0 } })
require('node:fs').writeSync(1, 'ready')`
  const program = await ScriptProgram.start(process.execPath, 'busy.cjs', source)
  try {
    const runtime = attached(process.execPath, program)
    const areas = program.areas().filter(({ access, path }) => access.startsWith('rw') && path === '')
    const place = fc.tuple(fc.nat(areas.length - 1), fc.double({ min: 0, max: 1, noNaN: true }))
    fc.assert(
      fc.property(place, fc.nat(8), ([index, into], shift) => {
        const { start, end } = areas[index]!
        const frame = runtime.name(start + Math.floor(((end - start) * into) / 8) * 8 + (shift === 8 ? 1 : 0))
        assert.equal(frame.type, 'v8js')
        assert.ok(frame.name.length > 0 && frame.name.length <= 2048)
      }),
      { numRuns: soak ? 100_000 : 3000 },
    )
    for (const pointer of [0, -8, 1, 2 ** 47, 2 ** 53, Number.NaN])
      assert.match(runtime.name(pointer).name, /^\[.*\]$/)
  } finally {
    await program.end()
  }
})

/** A program with memory that is the test's to write: its address is what it says. */
const blank = `import ctypes, time
room = ctypes.create_string_buffer(1 << 16)
print(ctypes.addressof(room), flush=True)
time.sleep(1000)`

test('objects that lie about themselves end in a frame', { skip: withoutPython }, async () => {
  const program = await ScriptProgram.start(systemPython, 'blank.py', blank)
  try {
    const runtime = attached(process.execPath, program)
    const room = Math.ceil(Number(program.said) / 8) * 8
    const types = instanceTypes(process.execPath)
    // Maps stand first, one for each type; objects and words of any kind behind them.
    const words = 512
    const object = fc.nat(words - 1).map(word => BigInt(room + 1024 + word * 8 + 1))
    const map = fc.nat(types.length - 1).map(index => BigInt(room + index * 16 + 1))
    const small = fc.integer({ min: -5, max: 3000 }).map(value => BigInt.asUintN(64, BigInt(value) << 32n))
    const word = fc.oneof(
      { weight: 4, arbitrary: object },
      { weight: 3, arbitrary: map },
      { weight: 2, arbitrary: small },
      { weight: 1, arbitrary: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }) },
    )
    const bytes = Buffer.alloc(1024 + words * 8)
    types.forEach((type, index) => {
      bytes.writeUInt16LE(type, index * 16 + 12)
    })
    fc.assert(
      fc.property(fc.array(word, { minLength: words, maxLength: words }), values => {
        values.forEach((value, index) => {
          bytes.writeBigUInt64LE(value, 1024 + index * 8)
        })
        writeMemory(program.pid, room, bytes)
        for (let at = 0; at < words; at++) runtime.name(room + 1024 + at * 8)
      }),
      { numRuns: soak ? 500 : 10, endOnFailure: true },
    )
  } finally {
    await program.end()
  }
})

/** Those of strings of all kinds, and of what has names. */
function instanceTypes(binary: string): number[] {
  const fd = openSync(binary, 'r')
  try {
    const constants = readConstants(ElfFile.of(fd)) as V8Constants
    const { sharedType, scriptType, scopeInfoType } = constants
    return [
      sharedType,
      sharedType,
      scriptType,
      scopeInfoType,
      0,
      8,
      32,
      33,
      34,
      35,
      37,
      40,
      41,
      42,
      43,
      45,
      50,
    ]
  } finally {
    closeSync(fd)
  }
}

function writeMemory(pid: number, address: number, bytes: Buffer): void {
  const fd = openSync(`/proc/${pid}/mem`, 'r+')
  try {
    writeSync(fd, bytes, 0, bytes.length, address)
  } finally {
    closeSync(fd)
  }
}
