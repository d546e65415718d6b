// owns: process
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { soak } from '../../test/helpers/soak.ts'

const records = soak ? 10_000_000 : 100_000

/** Compiles the thread between a producer and a reader, and runs it. Throws with what it says when something is wrong. */
function race(...sanitizers: string[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-race-'))
  try {
    const program = join(directory, 'race')
    const sources = ['test/fixtures/native/backlog-race.c', 'native/backlog.c']
    const options = ['-std=gnu11', '-O1', '-g', '-Wall', '-Werror', '-Inative', '-pthread']
    execFileSync('gcc', [...options, `-fsanitize=${sanitizers.join(',')}`, '-o', program, ...sources])
    // The layout that ThreadSanitizer needs is not that of every kernel.
    return execFileSync('setarch', ['-R', program, String(records)], { encoding: 'utf8', stdio: 'pipe' })
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

test('the thread that empties a ring and its reader get in each other’s way nowhere', () => {
  assert.match(race('thread'), new RegExp(`^${records} records, `))
})

test('and touch no memory that is not theirs', () => {
  assert.match(race('address', 'undefined'), new RegExp(`^${records} records, `))
})
