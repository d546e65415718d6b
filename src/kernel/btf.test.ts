import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileBpf } from '../../test/helpers/compile-bpf.ts'
import { BtfError, readBtf } from './btf.ts'

const object = compileBpf('layouts')
const btf = readBtf(object)

test('offsets and sizes of all kinds of members, anonymous ones among their parent’s', () => {
  const { size, fields } = btf.structs.find(({ name }) => name === 'svc_all')!
  assert.equal(size, 64)
  assert.deepEqual(
    fields.map(field => [field.name, field.offset, field.size, field.isArray]),
    [
      ['start_ns', 0, 8, false],
      ['port', 8, 4, false],
      ['v4', 12, 4, false],
      ['high', 12, 2, false],
      ['low', 14, 2, false],
      ['name', 16, 16, true],
      ['grid', 32, 12, true],
      ['inner', 44, 4, false],
      ['colour', 48, 4, false],
      ['pointer', 56, 8, false],
    ],
  )
})

test('bit fields are marked', () => {
  const { fields } = btf.structs.find(({ name }) => name === 'svc_bits')!
  assert.deepEqual(
    fields.map(field => [field.name, field.isBitField]),
    [
      ['low', true],
      ['high', true],
      ['whole', false],
    ],
  )
})

test('enumerations have their names and values, negative ones too', () => {
  const valuesOf = (name: string) => btf.enums.find(item => item.name === name)!.values
  assert.deepEqual(valuesOf('svc_sign'), [
    { name: 'SVC_MINUS', value: -1 },
    { name: 'SVC_PLUS', value: 1 },
  ])
  assert.equal(valuesOf('svc_colour').length, 3)
})

test('global variables stand where the symbol table says', () => {
  const check = (section: string, want: [string, number, number][]) => {
    const { fields } = btf.sections.find(({ name }) => name === section)!
    assert.deepEqual(
      fields.map(field => [field.name, field.offset, field.size]),
      want,
    )
  }
  check('.rodata', [
    ['first_limit', 0, 4],
    ['second_limit', 8, 8],
  ])
  check('.bss', [
    ['counts', 0, 16],
    ['flag', 16, 1],
  ])
  check('.data', [['local', 0, 2]])
  assert.equal(btf.sections.length, 3)
})

test('what is no object is an error with the cause', () => {
  const check = (bytes: Uint8Array, want: RegExp) =>
    assert.throws(
      () => readBtf(bytes),
      (error: unknown) => error instanceof BtfError && want.test(error.message),
    )
  check(new Uint8Array(), /cut short/)
  check(new TextEncoder().encode('#!/bin/sh\nexit'), /not an ELF-64 file/)
  check(object.subarray(0, 60), /cut short/)
})

test('a file cut at any place is an error or the same answer', () => {
  for (let length = 0; length < object.length; length += 13) {
    try {
      readBtf(object.slice(0, length))
    } catch (error) {
      assert.ok(error instanceof BtfError, String(error))
    }
  }
})

test('damaged bytes are an error or an answer, in bounded time', () => {
  const place = fc.tuple(fc.nat(object.length - 1), fc.nat(255))
  fc.assert(
    fc.property(fc.array(place, { minLength: 1, maxLength: 20 }), changes => {
      const bytes = object.slice()
      for (const [at, value] of changes) bytes[at] = value
      try {
        readBtf(bytes)
      } catch (error) {
        assert.ok(error instanceof BtfError, String(error))
      }
    }),
    { numRuns: 2000 },
  )
})

test('types that contain themselves are an error', () => {
  // Every word of the types in turn becomes a reference to each of the first types.
  const bytes = object.slice()
  const start = Buffer.from(bytes).indexOf(Buffer.from([0x9f, 0xeb, 1, 0]))
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  const length = view.getUint32(start + 12, true)
  for (let at = start + 24; at < start + 24 + length; at += 4) {
    const before = view.getUint32(at, true)
    for (let id = 0; id < 24; id++) {
      view.setUint32(at, id, true)
      try {
        readBtf(bytes)
      } catch (error) {
        assert.ok(error instanceof BtfError, String(error))
      }
    }
    view.setUint32(at, before, true)
  }
})

test('the generator writes layouts, and its check names the file that is stale', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-gen-'))
  const run = (...flags: string[]) => {
    const tool = join(import.meta.dirname, '..', '..', 'tools', 'gen-bpf.ts')
    return spawnSync(process.execPath, [tool, ...flags], { cwd: directory, encoding: 'utf8' })
  }
  try {
    assert.match(run('--check').stderr, /cannot find dist\/\*\.bpf\.o: run tools\/setup first/)
    mkdirSync(join(directory, 'dist'))
    writeFileSync(join(directory, 'dist', 'layouts.bpf.o'), object)
    assert.match(run().stderr, /cannot lay out dist\/layouts\.bpf\.o: struct svc_bits: 'low' is a bit field/)
    // A structure with another prefix does not count, so its bit fields do not matter.
    const bytes = Buffer.from(object)
    bytes.write('own', bytes.indexOf('svc_bits\0', bytes.indexOf(Buffer.from([0x9f, 0xeb, 1, 0]))))
    writeFileSync(join(directory, 'dist', 'layouts.bpf.o'), bytes)
    const stale = run('--check')
    assert.equal(stale.status, 1)
    assert.match(stale.stderr, /stale: src\/kernel\/gen\/layouts\.ts/)
    assert.equal(run().status, 0)
    assert.equal(run('--check').status, 0)
    const text = readFileSync(join(directory, 'src/kernel/gen/layouts.ts'), 'utf8')
    assert.match(text, /export const svcAll = \{\n {2}size: 64,\n {2}startNs: 0,\n/)
    assert.match(text, / {2}name: 16,\n {2}nameSize: 16,\n/)
    assert.match(text, /export const svcColour = \[\n {2}'red',\n {2}'dark_green',\n\] as const\n/)
    assert.match(text, /export const svcSign = \{\n {2}minus: -1,\n {2}plus: 1,\n\} as const\n/)
    assert.match(
      text,
      /export const rodata = \{\n {2}size: 16,\n {2}firstLimit: 0,\n {2}secondLimit: 8,\n\} as const\n/,
    )
    writeFileSync(join(directory, 'src/kernel/gen/old.ts'), '')
    assert.match(run('--check').stderr, /stale: src\/kernel\/gen\/old\.ts/)
    assert.equal(run().status, 0)
    assert.equal(run('--check').status, 0)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
