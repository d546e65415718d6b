import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { elfImage, openImage } from '../../../../test/helpers/elf-image.ts'
import { systemPython, withoutPython } from '../../../../test/helpers/runtimes/script-program.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { findSymbols } from './symbol-search.ts'

const withoutReadelf =
  withoutPython === false && spawnSync('readelf', ['--version']).status === 0
    ? false
    : 'symbols of Python are compared with those that readelf finds'

test('symbols are found by the beginning of their names', { skip: withoutReadelf }, () => {
  const check = (path: string, prefix: string, least: number) => {
    const fd = openSync(path, 'r')
    const found = findSymbols(ElfFile.of(fd), prefix)
    closeSync(fd)
    const { stdout } = spawnSync('readelf', ['-W', '--dyn-syms', path], { maxBuffer: 2 ** 28 })
    const rows = String(stdout)
      .split('\n')
      .map(line => /: ([0-9a-f]+) +(\S+) \S+ +\S+ +\S+ +(\S+) ([^@ ]+)/.exec(line))
      .filter(row => row !== null && row[4]!.startsWith(prefix) && row[3] !== 'UND')
    const want = new Map(
      rows.map(row => [row![4], { address: parseInt(row![1]!, 16), size: Number(row![2]) }]),
    )
    assert.ok(want.size >= least, `readelf found ${want.size} in ${path}`)
    assert.deepEqual(new Map([...found].sort()), new Map([...want].sort()))
  }
  check(systemPython, 'Py', 1000)
  check(systemPython, '_PyEval_', 10)
  check('/bin/sh', 'v8dbg_', 0)
})

const scratch = mkdtempSync(join(tmpdir(), 'svc-symbol-search-'))
after(() => rmSync(scratch, { recursive: true }))

/** What is looked for, byte by byte. A name may stand at the end of another one. */
function naive(
  strings: Buffer,
  table: Buffer,
  prefix: string,
): Map<string, { address: number; size: number }> {
  const found = new Map<string, { address: number; size: number }>()
  for (let at = 0; at + 24 <= table.length; at += 24) {
    const from = table.readUInt32LE(at)
    const end = from < strings.length ? strings.indexOf(0, from) : -1
    if (end < 0 || end - from > 256 || table.readUInt16LE(at + 6) === 0) continue
    const name = strings.toString('latin1', from, end)
    if (name.startsWith(prefix))
      found.set(name, {
        address: Number(table.readBigUInt64LE(at + 8)),
        size: Number(table.readBigUInt64LE(at + 16)),
      })
  }
  return found
}

test('of any table those are found that a search byte by byte finds', () => {
  const word = fc.constantFrom('Py', 'P', 'y', 'PyPy', 'main', '\0', 'x'.repeat(255), 'z'.repeat(3000))
  const symbol = fc.tuple(fc.nat(), fc.nat({ max: 2 }), fc.nat({ max: 2 ** 31 }), fc.nat({ max: 2 ** 31 }))
  fc.assert(
    fc.property(
      fc.array(word, { maxLength: 80 }),
      fc.array(symbol, { maxLength: 60 }),
      fc.constantFrom(2, 11),
      fc.boolean(),
      (words, symbols, type, isLong) => {
        // Longer ones are read in pieces, and names lie across them.
        const strings = Buffer.from(`${isLong ? 'q'.repeat(65_515) : ''}${words.join('')}`, 'latin1')
        const table = Buffer.alloc(symbols.length * 24)
        const starts = [...strings.toString('latin1').matchAll(/Py/g)].map(({ index }) => index)
        symbols.forEach(([name, section, address, size], i) => {
          const at =
            name % 3 > 0 && starts.length > 0 ? starts[name % starts.length]! : name % (strings.length + 10)
          table.writeUInt32LE(at, i * 24)
          table.writeUInt16LE(section, i * 24 + 6)
          table.writeBigUInt64LE(BigInt(address), i * 24 + 8)
          table.writeBigUInt64LE(BigInt(size), i * 24 + 16)
        })
        const image = elfImage([
          { name: '.symtab', type, bytes: table, link: 2 },
          { name: '.strtab', type: 3, bytes: strings },
        ])
        const fd = openImage(join(scratch, 'file'), image)
        try {
          const found = findSymbols(ElfFile.of(fd), 'Py')
          assert.deepEqual([...found].sort(), [...naive(strings, table, 'Py')].sort())
        } finally {
          closeSync(fd)
        }
      },
    ),
    { numRuns: soak ? 10_000 : 200 },
  )
})
