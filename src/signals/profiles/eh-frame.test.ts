import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { ElfFile } from '../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../foundation/lib/elf/elf-format.ts'
import { cfaRule, rbpRule, ruleBytes, type UnwindTable } from '../../foundation/model/unwind-table.ts'
import { buildUnwindTable, type UnwindLimits } from './eh-frame.ts'

const skip = process.arch === 'x64' ? false : 'tables are made for x86-64, and this is another machine'
const directory = mkdtempSync(join(tmpdir(), 'svc-eh-frame-'))
after(() => rmSync(directory, { recursive: true }))

function withElf<T>(path: string, use: (elf: ElfFile) => T): T {
  const fd = openSync(path, 'r')
  try {
    return use(ElfFile.of(fd))
  } finally {
    closeSync(fd)
  }
}

function tableOf(path: string, limits?: UnwindLimits): UnwindTable {
  const table = withElf(path, elf => buildUnwindTable(elf, limits))
  assert.ok(table, path)
  return table
}

/** As the kernel side finds it. */
function ruleAt({ rows, pages, rules }: UnwindTable, place: number): string {
  const page = place >>> 16
  let low = page + 1 < pages.length ? pages[page]! : rows.length
  let high = page + 1 < pages.length ? pages[page + 1]! : rows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (rows[middle]! >>> 16 <= (place & 0xffff)) low = middle + 1
    else high = middle
  }
  return low === 0 ? 'none' : ruleText(rules, rows[low - 1]! & 0xffff)
}

const cfaNames = Object.keys(cfaRule)

/** readelf does not say what an expression is. */
function isSame(got: string, text: string): boolean {
  // GCC says so of functions that have put rbp back.
  if (text === 'rsp+8 rbp exp') return got === 'rsp+8'
  if (text === 'exp') return /^(deref|plt|unsupported)/.test(got)
  return text.endsWith(' rbp exp') ? got.replace(/ rbp (lost|at .*)$/, ' rbp exp') === text : got === text
}

function ruleText(rules: Uint8Array, index: number): string {
  const view = Buffer.from(rules.buffer, rules.byteOffset + index * ruleBytes, ruleBytes)
  const name = cfaNames[view[0]!]!
  const cfa = view.readInt32LE(4)
  const isDeref = name.startsWith('deref')
  const value = isDeref ? `*${(cfa << 16) >> 16}+${cfa >> 16}` : cfa === 0 ? '' : `+${cfa}`
  const offset = view.readInt16LE(2)
  const rbp = ['', ` rbp ${offset}`, ' rbp lost', ` rbp at rbp+${offset}`][view[1]!]!
  return name + value + rbp
}

interface Function {
  start: number
  end: number
  rows: { at: number; text: string }[]
}

/** What readelf makes of a row: `exp` where it does not say. */
function wanted(columns: readonly string[], fields: readonly string[]): string {
  const field = (name: string) => (columns.includes(name) ? fields[columns.indexOf(name) - 1]! : 'u')
  const ra = field('ra')
  const rbp = field('rbp')
  const cfa = fields[0]!
  if (ra === 'u') return 'stop'
  if (ra === 'exp' && cfa === 'exp') return 'signal'
  if (ra !== 'c-8') return 'unsupported'
  if (cfa === 'exp') return cfa
  if (!/^r[bs]p\+/.test(cfa)) return 'unsupported'
  if (rbp === 'u' || rbp === 's') return cfa
  if (rbp === 'exp') return `${cfa} rbp exp`
  return cfa + (rbp.startsWith('c-') ? ` rbp ${rbp.slice(1)}` : ' rbp lost')
}

function* functionsOf(path: string): Generator<Function> {
  // Its exit status is 1 where a file with debug information has something else wrong with it.
  const options = { maxBuffer: 2 ** 30, encoding: 'latin1' } as const
  const output = spawnSync(
    'readelf',
    ['-W', '--debug-dump=frames-interp,no-follow-links', path],
    options,
  ).stdout
  const common = new Map<string, string>()
  let current: Function | undefined
  let commonAt = ''
  let columns: string[] = []
  for (const line of output.split('\n')) {
    const head = /^([0-9a-f]{8}) \S+ \S+ (CIE|FDE(?: cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)))/.exec(
      line,
    )
    if (head) {
      if (current) yield current
      current = undefined
      commonAt = head[2] === 'CIE' ? head[1]! : ''
      if (commonAt) continue
      const [start, end] = [Number.parseInt(head[4]!, 16), Number.parseInt(head[5]!, 16)]
      current = { start, end, rows: [{ at: start, text: common.get(head[3]!)! }] }
    } else if (/^\s+LOC/.test(line)) columns = line.trim().split(/\s+/)
    else if (/^[0-9a-f]{16} /.test(line)) {
      const [at, ...fields] = line
        .replaceAll(/ \(\w+\)/g, '')
        .trim()
        .split(/\s+/)
      const row = { at: Number.parseInt(at!, 16), text: wanted(columns, fields) }
      if (commonAt) common.set(commonAt, row.text)
      else if (current && row.at === current.start) current.rows = [row]
      else if (current && row.at < current.end) current.rows.push(row)
    }
  }
  if (current) yield current
}

/** Compares each row at its first and last byte. Gives how many were compared, and those that differ. */
function compare(path: string): { count: number; differing: string[] } {
  const table = tableOf(path)
  const differing: string[] = []
  let count = 0
  withElf(path, elf => {
    for (const { start, end, rows } of functionsOf(path)) {
      if (!elf.isExecutableOffset(elf.offsetOf(start) ?? -1)) continue
      rows.forEach(({ at, text }, index) => {
        const after = rows[index + 1]?.at ?? end
        for (const place of new Set([at, after - 1])) {
          const got = ruleAt(table, elf.offsetOf(place)!)
          count++
          if (!isSame(got, text)) differing.push(`${place.toString(16)}: ${text} is ${got}`)
        }
      })
    }
  })
  return { count, differing }
}

const libraries = '/usr/lib/x86_64-linux-gnu'
const goldenFiles = [
  '/bin/bash',
  '/lib64/ld-linux-x86-64.so.2',
  `${libraries}/libc.so.6`,
  ...(soak
    ? [
        '/usr/bin/python3.11',
        `${libraries}/libcrypto.so.3`,
        `${libraries}/libstdc++.so.6`,
        `${libraries}/libLLVM-14.so.1`,
        process.execPath,
      ]
    : []),
]

for (const path of goldenFiles) {
  test(`each row of ${path} is what readelf says`, { skip: skip || !existsSync(path) }, t => {
    const { count, differing } = compare(path)
    t.diagnostic(`${count} places compared`)
    assert.ok(count > 1000)
    assert.deepEqual(differing, [])
  })
}

/** Functions of 64 bytes each: a name, a body, and what holds from which byte on. */
const functions: readonly [name: string, body: string, rules: Readonly<Record<number, string>>][] = [
  [
    'a frame pointer is set up and taken down',
    `nop; .cfi_def_cfa_offset 16; .cfi_offset %rbp, -16; nop; .cfi_def_cfa_register %rbp; nop
     .cfi_def_cfa %rsp, 8; nop; .cfi_restore %rbp; nop; .cfi_same_value %rbp; nop; .cfi_undefined %rbp; nop`,
    {
      0: 'rsp+8',
      1: 'rsp+16 rbp -16',
      2: 'rbp+16 rbp -16',
      3: 'rsp+8 rbp -16',
      4: 'rsp+8',
      6: 'rsp+8 rbp lost',
    },
  ],
  [
    'what is remembered comes back',
    `.cfi_def_cfa_offset 32; nop; .cfi_remember_state; .cfi_def_cfa_offset 16; nop
     .cfi_remember_state; .cfi_def_cfa %rbp, 24; nop; .cfi_restore_state; nop; .cfi_restore_state; nop`,
    { 0: 'rsp+32', 1: 'rsp+16', 2: 'rbp+24', 3: 'rsp+16', 4: 'rsp+32' },
  ],
  ['the outermost function', 'nop; .cfi_undefined %rip; nop', { 0: 'rsp+8', 1: 'stop' }],
  [
    'the CFA stands in memory',
    `.cfi_escape 0x0f, 5, 0x77, 40, 0x06, 0x23, 8; .cfi_offset %rbp, -16; nop
     .cfi_escape 0x0f, 3, 0x76, 0x58, 0x06; .cfi_escape 0x10, 6, 2, 0x76, 0; nop
     .cfi_escape 0x0f, 5, 0x77, 0x78, 0x06, 0x38, 0x22; nop
     .cfi_escape 0x0f, 6, 0x77, 0x78, 0x06, 0x08, 200, 0x22; nop
     .cfi_escape 0x0f, 2, 0x77, 24; nop; .cfi_def_cfa %rsp, 8; nop`,
    {
      0: 'derefRsp*40+8 rbp -16',
      1: 'derefRbp*-40+0 rbp at rbp+0',
      2: 'derefRsp*-8+8 rbp at rbp+0',
      3: 'derefRsp*-8+200 rbp at rbp+0',
      4: 'rsp+24 rbp at rbp+0',
      5: 'rsp+8',
    },
  ],
  [
    'expressions that are not known',
    `.cfi_escape 0x0f, 4, 0x77, 40, 0x06, 0x06; nop; .cfi_def_cfa %rsp, 8; nop
     .cfi_escape 0x0f, 3, 0x73, 40, 0x06; nop; .cfi_def_cfa %rsp, 8; nop
     .cfi_escape 0x0f, 6, 0x77, 0x80, 0x80, 0x10, 0x06, 0x96; nop; .cfi_def_cfa %r10, 0; nop
     .cfi_def_cfa %rbp, 16; nop; .cfi_escape 0x0f, 0; nop`,
    {
      0: 'unsupported',
      1: 'rsp+8',
      2: 'unsupported',
      3: 'rsp+8',
      4: 'unsupported',
      5: 'unsupported',
      6: 'rbp+16',
      7: 'unsupported',
    },
  ],
  [
    'a procedure linkage table',
    `nop; .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22; nop
     .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x1c; nop`,
    { 0: 'rsp+8', 1: 'plt', 2: 'unsupported' },
  ],
  [
    'a frame of a signal',
    `.cfi_signal_frame; .cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06
     nop; .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1; .cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0; nop
     .cfi_escape 0x10, 16, 3, 0x77, 0xb0, 1; nop`,
    { 0: 'derefRsp*160+0', 1: 'signal', 2: 'unsupported' },
  ],
  [
    'no signal without its mark',
    '.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 16, 3, 0x77, 0xa8, 1; nop',
    { 0: 'unsupported' },
  ],
  [
    'the return address is elsewhere',
    `.cfi_register %rip, %rdx; nop; .cfi_restore %rip; nop; .cfi_offset %rip, -16; nop; .cfi_offset %rip, -8; nop
     .cfi_same_value %rip; nop`,
    { 0: 'unsupported', 1: 'rsp+8', 2: 'unsupported', 3: 'rsp+8', 4: 'unsupported' },
  ],
  [
    'rbp is elsewhere',
    `.cfi_register %rbp, %r9; nop; .cfi_restore %rbp; nop; .cfi_val_offset %rbp, -16; nop
     .cfi_escape 0x2f, 6, 2; nop; .cfi_escape 0x11, 6, 0x7e; nop; .cfi_escape 0x16, 6, 2, 0x77, 0; nop
     .cfi_escape 0x05, 6, 0x80, 0x80, 4; nop`,
    {
      0: 'rsp+8 rbp lost',
      1: 'rsp+8',
      2: 'rsp+8 rbp lost',
      3: 'rsp+8 rbp 16',
      4: 'rsp+8 rbp 16',
      5: 'rsp+8 rbp lost',
      6: 'rsp+8 rbp lost',
    },
  ],
  [
    'other instructions',
    '.cfi_escape 0x2e, 16; nop; .cfi_escape 0x12, 7, 0x7e; nop; .cfi_escape 0x13, 0x7c; nop',
    { 0: 'rsp+8', 1: 'rsp+16', 2: 'rsp+32' },
  ],
  [
    'an instruction that is not known',
    'nop; .cfi_escape 0x3c; nop; .cfi_def_cfa_offset 16; nop',
    { 0: 'rsp+8', 1: 'unsupported', 2: 'unsupported' },
  ],
  [
    'only an offset, where there is no register',
    'nop; .cfi_undefined %rip; .cfi_escape 0x0f, 3, 0x77, 8, 6; .cfi_escape 0x0e, 16; nop',
    { 0: 'rsp+8', 1: 'unsupported' },
  ],
  ['nothing was remembered', 'nop; .cfi_escape 0x0b; nop', { 0: 'rsp+8', 1: 'unsupported' }],
  [
    'a personality and exceptions',
    '.cfi_personality 0x1b, start; .cfi_lsda 0x1b, start; nop; .cfi_def_cfa_offset 24; nop',
    { 0: 'rsp+8', 1: 'rsp+24', 2: 'none' },
  ],
]

const longFunction = `
  .fill 300, 1, 0x90; .cfi_def_cfa_offset 16; .fill 70000, 1, 0x90; .cfi_def_cfa_offset 24
  .fill 70000, 1, 0x90; .cfi_def_cfa_offset 32; nop`

test('instructions of all kinds are followed', { skip }, () => {
  const source = join(directory, 'code.s')
  const bodies = [...functions.map(([, body]) => body), longFunction]
  const entries = bodies.map(body => `.balign 64, 0xcc\n.cfi_startproc\n${body}\n.cfi_endproc\n`)
  writeFileSync(source, `.globl start\n.hidden start\nstart:\n${entries.join('')}.section .note.GNU-stack\n`)
  const library = join(directory, 'libcode.so')
  // The linker says that it cannot follow all of it.
  execFileSync('gcc', ['-shared', '-nostdlib', '-o', library, source], { stdio: 'ignore' })
  const table = tableOf(library)
  const text = withElf(library, elf => elf.section('.text')!)
  functions.forEach(([name, , rules], index) => {
    for (const [at, rule] of Object.entries(rules))
      assert.equal(ruleAt(table, text.offset + 64 * index + Number(at)), rule, `${name}, byte ${at}`)
  })
  const long = text.offset + 64 * functions.length
  const check = (at: number, rule: string) => assert.equal(ruleAt(table, long + at), rule)
  check(299, 'rsp+8')
  check(300, 'rsp+16')
  check(70_299, 'rsp+16')
  check(70_300, 'rsp+24')
  check(140_300, 'rsp+32')
  check(140_301, 'none')
  check(2 ** 22, 'none')
  assert.equal(ruleAt(table, 0), 'none')
  const counts = functions
    .flatMap(([, , rules]) => Object.values(rules))
    .filter(rule => rule === 'unsupported')
  // Where two follow each other, one row holds for both.
  assert.equal(table.unsupported, counts.length - 2)
})

/** A program with this .eh_frame at 64, and its code behind it. The file's places are addresses less `base`. */
const base = 0x10000
const codeBytes = 4096
function programWith(frames: Buffer): string {
  const names = Buffer.from('\0.eh_frame\0.names\0', 'latin1')
  const tables = 64 + frames.length + codeBytes
  const whole = Buffer.alloc(tables + 56 + 3 * 64 + names.length)
  whole.write('7f454c46020101', 'hex')
  for (const [at, value] of [
    [16, 3],
    [18, 62],
    [54, 56],
    [56, 1],
    [58, 64],
    [60, 3],
    [62, 2],
  ] as const)
    whole.writeUInt16LE(value, at)
  whole.writeUInt32LE(tables, 32)
  whole.writeUInt32LE(tables + 56, 40)
  frames.copy(whole, 64)
  for (const [at, value] of [
    [0, 1],
    [4, 5],
    [16, base],
    [32, tables],
    [40, tables],
  ] as const)
    whole.writeUInt32LE(value, tables + at)
  const section = (index: number, fields: readonly (readonly [number, number])[]) => {
    for (const [at, value] of fields) whole.writeUInt32LE(value, tables + 56 + 64 * index + at)
  }
  section(1, [
    [0, 1],
    [4, 1],
    [16, base + 64],
    [24, 64],
    [32, frames.length],
  ])
  section(2, [
    [0, 11],
    [4, 3],
    [24, whole.length - names.length],
    [32, names.length],
  ])
  names.copy(whole, whole.length - names.length)
  const path = join(directory, 'program')
  writeFileSync(path, whole)
  return path
}

/** An entry, its length before it. */
function entry(body: Buffer, is64 = false): Buffer {
  const length = Buffer.alloc(is64 ? 12 : 4)
  length.writeUInt32LE(is64 ? 0xffffffff : body.length)
  if (is64) length.writeUInt32LE(body.length, 4)
  return Buffer.concat([length, body])
}

/** rsp + 8 and the usual return address; addresses are 8 bytes. */
const rspPlus8 = [0x0c, 7, 8, 0x90, 1]
const common = entry(Buffer.from([0, 0, 0, 0, 1, 0, 1, 0x78, 16, ...rspPlus8]))

function functionEntry(
  at: number,
  [start, length]: readonly [number, number],
  program: readonly number[],
  is64 = false,
) {
  const body = Buffer.alloc(20)
  body.writeUInt32LE(at + (is64 ? 12 : 4), 0)
  body.writeUInt32LE(start, 4)
  body.writeUInt32LE(length, 12)
  return entry(Buffer.concat([body, Buffer.from(program)]), is64)
}

/** Functions with a CFA of rsp + n each, by their place behind the start of the code. */
function nested(
  ranges: readonly (readonly [start: number, length: number, cfa: number])[],
): (at: number) => string {
  const size = common.length + ranges.length * (4 + 20 + 2)
  let frames = common
  for (const [start, length, cfa] of ranges)
    frames = Buffer.concat([
      frames,
      functionEntry(frames.length, [base + 64 + size + start, length], [0x0e, cfa]),
    ])
  assert.equal(frames.length, size)
  const table = tableOf(programWith(frames))
  return at => ruleAt(table, 64 + size + at)
}

test('functions that overlap: the one that begins last holds, then the other again', { skip }, () => {
  const rule = nested([
    [200, 50, 24],
    [100, 300, 16],
    [300, 200, 32],
    [300, 10, 40],
    [520, 10, 48],
    [600, 8, 56],
  ])
  for (const [at, want] of [
    [99, 'none'],
    [100, 'rsp+16'],
    [199, 'rsp+16'],
    [200, 'rsp+24'],
    [249, 'rsp+24'],
    [250, 'rsp+16'],
    [300, 'rsp+40'],
    [310, 'rsp+32'],
    [499, 'rsp+32'],
    [500, 'none'],
    [520, 'rsp+48'],
    [530, 'none'],
    [607, 'rsp+56'],
    [608, 'none'],
  ] as const)
    assert.equal(rule(at), want, String(at))
  // Up to 15 bytes between functions are padding.
  const padded = nested([
    [100, 10, 16],
    [125, 10, 24],
    [151, 10, 32],
  ])
  assert.deepEqual([100, 124, 125, 135, 150, 151].map(padded), [
    'rsp+16',
    'rsp+16',
    'rsp+24',
    'none',
    'none',
    'rsp+32',
  ])
})

test('entries with lengths of 64 bits, and those behind an end, are read', { skip }, () => {
  const code = base + 64 + common.length + 4 + (12 + 22) + 4 + 22
  const long = functionEntry(common.length + 4, [code, 100], [0x0e, 32], true)
  const after = functionEntry(common.length + 4 + long.length, [code + 200, 100], [0x0e, 40])
  const frames = Buffer.concat([common, Buffer.alloc(4), long, after])
  const table = tableOf(programWith(frames))
  const rules = [0, 99, 100, 200, 299, 300].map(at => ruleAt(table, 64 + frames.length + at))
  assert.deepEqual(rules, ['rsp+32', 'rsp+32', 'none', 'rsp+40', 'rsp+40', 'none'])
})

test('a program whose table of sections was stripped says where its .eh_frame is', { skip }, () => {
  const bytes = readFileSync('/bin/bash')
  bytes.fill(0, 40, 48)
  bytes.fill(0, 58, 64)
  const path = join(directory, 'stripped')
  writeFileSync(path, bytes)
  assert.deepEqual(tableOf(path), tableOf('/bin/bash'))
})

test('there is no table without .eh_frame, or for another machine', { skip }, () => {
  const bytes = readFileSync('/bin/bash')
  bytes.writeUInt16LE(183, 18)
  const path = join(directory, 'arm64')
  writeFileSync(path, bytes)
  assert.equal(
    withElf(path, elf => buildUnwindTable(elf)),
    undefined,
  )
  const source = join(directory, 'none.s')
  writeFileSync(source, '.globl start\nstart: nop\n')
  const none = join(directory, 'none.so')
  execFileSync('gcc', ['-shared', '-nostdlib', '-o', none, source])
  assert.equal(
    withElf(none, elf => buildUnwindTable(elf)),
    undefined,
  )
})

test('what is beyond the limits is an error', { skip }, () => {
  const check = (limits: UnwindLimits, what: RegExp) =>
    assert.throws(
      () => tableOf('/bin/bash', limits),
      error => error instanceof ElfError && what.test(error.message),
    )
  check({ maxRows: 1000, maxBytes: 2 ** 20 }, /more than 1000 rows/)
  check({ maxRows: 100, maxBytes: 2 ** 20 }, /more than 100 rows/)
  check({ maxRows: 2 ** 20, maxBytes: 1000 }, /more than 1000 bytes/)
})

/** As the kernel side relies on it. */
function assertSound({ rows, pages, rules, unsupported }: UnwindTable): void {
  assert.equal(pages[0], 0)
  assert.equal(pages.at(-1), rows.length)
  for (let page = 0; page + 1 < pages.length; page++) {
    assert.ok(pages[page]! <= pages[page + 1]!)
    for (let row = pages[page]! + 1; row < pages[page + 1]!; row++)
      assert.ok(rows[row]! >>> 16 > rows[row - 1]! >>> 16)
  }
  for (const row of rows) assert.ok((row & 0xffff) < rules.length / ruleBytes)
  for (let at = 0; at < rules.length; at += ruleBytes)
    assert.ok(rules[at]! <= cfaRule.framePointer && rules[at + 1]! <= rbpRule.atRbp)
  assert.ok(unsupported <= rows.length)
}

/** A sound table, or `ElfError`. */
function assertBounded(path: string): void {
  try {
    const table = withElf(path, elf => buildUnwindTable(elf))
    if (table) assertSound(table)
  } catch (error) {
    assert.ok(error instanceof ElfError, String(error instanceof Error ? error.stack : error))
  }
}

test('whatever .eh_frame says, its table is sound', { skip }, () => {
  const frames = withElf('/bin/bash', elf => elf.bytes(elf.section('.eh_frame')!)).subarray(0, 4000)
  const change = fc.tuple(fc.nat(frames.length - 1), fc.nat(255))
  const numRuns = soak ? 2000 : 100
  fc.assert(
    fc.property(fc.array(change, { maxLength: 50 }), changes => {
      const changed = Buffer.from(frames)
      for (const [at, value] of changes) changed[at] = value
      assertBounded(programWith(changed))
    }),
    { numRuns },
  )
  const piece = fc.oneof(
    fc.constant(common),
    fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes)),
  )
  const functionPiece = fc
    .tuple(fc.nat(5000), fc.nat(5000), fc.uint8Array({ maxLength: 60 }))
    .map(([start, length, program]) => ({ start, length, program }))
  fc.assert(
    fc.property(fc.array(functionPiece, { maxLength: 30 }), piece, (pieces, behind) => {
      let whole = common
      for (const { start, length, program } of pieces)
        whole = Buffer.concat([whole, functionEntry(whole.length, [base + start, length], [...program])])
      assertBounded(programWith(Buffer.concat([whole, behind])))
    }),
    { numRuns },
  )
})

test('whatever a file says, there is a sound table or an error', { skip }, () => {
  const whole = readFileSync(join(directory, 'libcode.so'))
  const frames = withElf(join(directory, 'libcode.so'), elf => elf.section('.eh_frame')!)
  let seed = 5
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  const places = [
    () => random(64 + 600),
    () => frames.offset + random(frames.size),
    () => whole.length - 1 - random(1000),
  ]
  const path = join(directory, 'changed')
  for (let round = 0; round < (soak ? 1000 : 100); round++) {
    const changed = Buffer.from(random(8) ? whole : whole.subarray(0, random(whole.length)))
    for (let i = 0; i < 6 && changed.length > 0; i++)
      changed[places[random(3)]!() % changed.length] = random(2) ? random(256) : 255
    writeFileSync(path, changed)
    assertBounded(path)
  }
})

test('a table of a large program takes little memory to make', { skip }, t => {
  const script = `
    import { openSync, readFileSync } from 'node:fs'
    const { ElfFile } = await import(${JSON.stringify(new URL('../../foundation/lib/elf/elf-file.ts', import.meta.url).href)})
    const { buildUnwindTable } = await import(${JSON.stringify(new URL('./eh-frame.ts', import.meta.url).href)})
    const peak = () => Number(/VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))[1]) / 1024
    const elf = ElfFile.of(openSync(process.execPath, 'r'))
    const before = peak()
    const { rows } = buildUnwindTable(elf)
    console.log(rows.length, Math.round(peak() - before))`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  const [rows, mebibytes] = output.split(' ').map(Number)
  t.diagnostic(`${rows} rows, ${mebibytes} MiB`)
  assert.ok(rows! > 100_000)
  assert.ok(mebibytes! < 40)
})
