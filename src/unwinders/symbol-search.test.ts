import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { test } from 'node:test'
import { systemPython, withoutPython } from '../../test/helpers/runtimes/script-program.ts'
import { ElfFile } from '../lib/elf/elf-file.ts'
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
