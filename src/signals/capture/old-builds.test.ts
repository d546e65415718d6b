// owns: host
// The tables that objects have on kernels before 5.12, where newer ones keep the same with sockets and tasks.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, test } from 'node:test'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { nativeOrThrow, olderNative } from '../../../test/helpers/native.ts'
import { until } from '../../../test/helpers/program.ts'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import { bss as syscountBss } from '../../kernel/gen/syscount.ts'
import { loadBuild, loadObject } from '../../kernel/load-object.ts'
import { batchCursor, batchDone } from '../../kernel/native.ts'
import { loadStackObject } from './stack-object.ts'

const skip = withoutBpf
const open: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

/** A Python program that does something for each line that it hears, and says that it has. */
class Talker {
  readonly child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(script: string) {
    this.child = spawn('python3', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface(this.child.stdout!)[Symbol.asyncIterator]()
    open.push(this)
  }

  async ask(): Promise<void> {
    this.child.stdin!.write('\n')
    const { done } = await this.#lines.next()
    assert.ok(!done, 'the program ended')
  }

  async close(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.stdin!.end()
    await once(this.child, 'exit')
  }
}

function attached(name: string, programs: readonly string[]): BpfObject {
  const object = loadBuild(nativeOrThrow(), name, 'old')
  open.push(object)
  for (const program of programs) object.attach(program)
  return object
}

/** How many entries a table has. */
function entries(object: BpfObject, name: string): number {
  const map = object.map(name)
  const keys = Buffer.alloc(64 * map.keySize)
  const values = Buffer.alloc(64 * map.slotSize)
  const cursor = batchCursor(map)
  let count = 0
  while (!batchDone(cursor)) count += nativeOrThrow().mapReadBatch(map, cursor, keys, values, false)
  return count
}

/** How many the owners have of it together, as the programs count them. */
const used = (object: BpfObject): number =>
  new Uint32Array(object.native.mapView(object.map('.bss.old')), 0, 1)[0]!

test('each object has the build for the kernel', { skip }, () => {
  for (const name of ['net', 'process', 'syscount']) {
    for (const [native, wanted] of [
      [nativeOrThrow(), 'new'],
      [olderNative(), 'old'],
    ] as const) {
      const { object, build } = loadObject(native, name, {
        optional: ['svc_process_oom', 'svc_process_oom_pid'],
      })
      open.push(object)
      assert.equal(build, wanted, name)
      const kept = native.objectMaps(object.handle).filter(({ type }) => type.endsWith('_storage'))
      assert.equal(kept.length > 0, wanted === 'new', name)
    }
  }
})

test('a kernel that neither lets programs keep something nor walk by tables gets what is left', {
  skip,
}, () => {
  // The tree of mappings that the old build walks ended with Linux 6.0.
  const { object, build, degraded } = loadStackObject(olderNative(), undefined, undefined)
  open.push(object)
  assert.equal(build, 'old')
  assert.match(degraded ?? '', /does not support this map type/)
  const loaded = object.programs().filter(({ autoload }) => autoload)
  assert.deepEqual(loaded.map(({ name }) => name).sort(), [
    'svc_profile_cpu_plain',
    'svc_profile_memory_plain',
  ])
})

test('who shares a number with whom is told to nobody', { skip }, () => {
  const seeds = [0, 1].map(() => {
    const map = attached('syscount', []).map('.rodata.old')
    const value = Buffer.alloc(map.slotSize)
    assert.ok(nativeOrThrow().mapLookup(map, Buffer.alloc(4), value))
    return value.toString('hex')
  })
  assert.notEqual(seeds[0], seeds[1])
})

test('a connection is in the table as long as its socket is there', { skip }, async () => {
  const object = attached('net', ['svc_net_state', 'svc_net_destroy'])
  const talker = new Talker(`
import socket, struct, sys
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(300)
held = []
for line in sys.stdin:
  if held:
    for i, s in enumerate(held):
      if i % 3: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)) # ends by a reset
      s.close()
    held = []
  else:
    for i in range(200): held.append(socket.create_connection(l.getsockname())); held.append(l.accept()[0])
  print('done', flush=True)`)
  for (let round = 0; round < 3; round++) {
    await talker.ask()
    assert.ok(entries(object, 'conns') >= 400)
    await talker.ask()
    // Others connect on this host, too.
    await until('the table is empty', 20_000, () => entries(object, 'conns') < 50)
    assert.ok(Math.abs(used(object) - entries(object, 'conns')) < 20, `${used(object)}`)
    assert.equal(entries(object, 'claims'), 0)
  }
})

test('a thread is in the table from its first call to its end', { skip }, async () => {
  const object = attached('syscount', ['svc_syscall_gone', 'svc_syscall_exit', 'svc_syscall_enter'])
  new BigUint64Array(object.native.mapView(object.map('.bss')), syscountBss.wanted, 1).fill(~0n)
  const talker = new Talker(`
import sys, threading
for line in sys.stdin:
  go = threading.Event(); threads = [threading.Thread(target=go.wait) for i in range(300)]
  for t in threads: t.start()
  print('done', flush=True); sys.stdin.readline(); go.set()
  for t in threads: t.join()
  print('done', flush=True)`)
  await talker.ask()
  const before = entries(object, 'under_ways')
  assert.ok(before >= 300, `${before}`)
  await talker.ask()
  await until('they are gone', 20_000, () => entries(object, 'under_ways') <= before - 290)
  assert.ok(Math.abs(used(object) - entries(object, 'under_ways')) < 50, `${used(object)}`)
})
