import assert from 'node:assert/strict'
import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { Following, plainSource } from '../../../test/helpers/log-following.ts'
import { until } from '../../../test/helpers/program.ts'

test('where less is read than is written, many large files of one user keep no other log waiting', {
  skip: withoutRoot,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-turns-'))
  const files = 60
  const linesOfFile = 2_000
  const page = Array.from({ length: linesOfFile }, (_, i) => `${i} of a neighbour\n`).join('')
  for (const name of ['a', 'b', 'own', 'pods']) mkdirSync(join(directory, name))
  for (let i = 0; i < files; i++) {
    const path = join(directory, i % 2 === 0 ? 'a' : 'b', `${i}.log`)
    writeFileSync(path, page)
    chownSync(path, 65_534, 65_534)
  }
  writeFileSync(join(directory, 'own', 'one.log'), 'own\n'.repeat(100))
  writeFileSync(join(directory, 'pods', 'one.log'), 'pod\n'.repeat(1_500))

  // What takes the lines has room for 1,000, and takes them as slowly as it likes.
  const taken: string[] = []
  let waiting = 0
  const source = plainSource([join(directory, '*/*.log')], line => {
    taken.push(line)
    waiting++
  })
  const following = await Following.start([], join(directory, 'positions'), {
    startAt: 'beginning',
    sources: [source],
    pressure: () => waiting / 1_000,
  })
  const drain = setInterval(() => {
    waiting = 0
  }, 5)
  t.after(async () => {
    clearInterval(drain)
    await following.stop()
    rmSync(directory, { recursive: true })
  })
  const all = files * linesOfFile + 1_600
  await until('all is read', 60_000, () => taken.length >= all)
  assert.equal(taken.length, all)
  assert.equal(taken.filter(line => line === 'own').length, 100)
  // Each has its turn of 4 chunks of 512 lines at most before the neighbour has two.
  assert.ok(taken.lastIndexOf('own') < 10_000, `own after ${taken.lastIndexOf('own')} lines`)
  assert.ok(taken.lastIndexOf('pod') < 10_000, `pod after ${taken.lastIndexOf('pod')} lines`)
})
