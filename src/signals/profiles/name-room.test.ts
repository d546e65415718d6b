import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, rmSync, writeFileSync } from 'node:fs'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { frameSpace, type RawStack } from '../../foundation/model/raw-stack.ts'
import { Decoder } from '../../kernel/decoder.ts'
import { FrameNames } from './frame-names.ts'
import { FrameStore } from './frame-store.ts'
import { cutName } from './name-room.ts'
import { UnwindTableBuilder } from './unwind-table-builder.ts'

const nobody = 65_534
const settings = { demangle: true, perfMap: true, debugDirs: [], cacheBytes: 1 << 20, cacheDir: '' }
const children: ChildProcess[] = []
const files: string[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
  for (const file of files) rmSync(file, { force: true })
})

test('a name is cut at 1,024 bytes, between characters', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 3000, size: 'max' }), name => {
      const cut = cutName(name)
      assert.ok(Buffer.byteLength(cut) <= 1024)
      if (Buffer.byteLength(name) <= 1024) assert.equal(cut, name)
      else assert.ok(cut.endsWith('…') && Buffer.from(name).indexOf(cut.slice(0, -1)) === 0)
    }),
    { numRuns: 50 },
  )
})

/** A process that told of code with long names. */
function talker(uid: number, count: number): number {
  const child = spawn('sleep', ['1000'], { uid, gid: uid })
  children.push(child)
  const path = `/tmp/perf-${child.pid}.map`
  files.push(path)
  const line = (i: number) =>
    `${(0x1000 * (i + 1)).toString(16)} 1000 f${child.pid}_${i}_${'x'.repeat(4000)}\n`
  writeFileSync(path, Array.from({ length: count }, (_, i) => line(i)).join(''))
  chownSync(path, uid, uid)
  return child.pid!
}

function stacks(pid: number, count: number): RawStack[] {
  return Array.from({ length: count }, (_, i) => ({
    hash: pid * 100_000 + i,
    pid,
    comm: 'talker',
    spaces: Uint16Array.of(frameSpace.address),
    offsets: Float64Array.of(0x1000 * (i + 1)),
    inner: { spaces: new Uint16Array(0), offsets: new Float64Array(0) },
    end: 'complete',
  })) as unknown as RawStack[]
}

test('who has thousands of names of 4 KB gets half of the room, and a neighbour still has all of its own', {
  skip: process.geteuid!() === 0 ? false : 'root is needed',
}, () => {
  const decoder = new Decoder()
  const names = new FrameNames(new UnwindTableBuilder(settings, decoder), settings)
  const store = new FrameStore()
  const named = (pid: number, count: number) => {
    const answer = names.name(stacks(pid, count), [])
    store.add(answer)
    return answer.frames.filter(({ name }) => !name.startsWith('[')).length
  }
  const told = 4000
  const hostile = [talker(nobody, told), talker(nobody, told), talker(nobody, told)]
  const counts = hostile.map(pid => named(pid, told))
  assert.equal(counts[0], told)
  assert.ok(counts[2]! < told / 2)
  assert.ok(names.room.bytes <= 8 * 2 ** 20 + 4096)
  assert.ok(names.room.refused > told)
  // No string of 4 KB is kept anywhere.
  assert.ok(store.bytes < 20 * 2 ** 20)
  assert.ok(store.userStack(hostile[0]! * 100_000)[0]!.name.length <= 1024)
  assert.equal(store.userStack(hostile[2]! * 100_000 + told - 1)[0]!.name.includes('omitted'), true)
  assert.equal(named(talker(0, 1000), 1000), 1000)
  // All is told anew some time.
  names.clear(1)
  assert.equal(named(hostile[2]!, 1000), 1000)
  decoder.close()
})
