import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { until } from '../../../test/helpers/program.ts'
import { readMappings } from '../../kernel/process-maps.ts'
import { RuntimeProcesses } from './runtime-processes.ts'
import { type KnownFile, UnwindTableBuilder } from './unwind-table-builder.ts'

const settings = { demangle: true, perfMap: false, debugDirs: [], cacheBytes: 1 << 24, cacheDir: '' }

/** Memory of processes that a svc-probe of this one has open. */
function memories(): number {
  const children = readFileSync('/proc/thread-self/children', 'latin1').trim().split(' ')
  return children.flatMap(links).filter(link => /^\/proc\/\d+\/mem$/.test(link)).length
}

function links(pid: string): string[] {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).map(fd => readlinkSync(`${folder}/${fd}`))
  } catch {
    return [] // it ended
  }
}

function programOf(pid: number): { known: KnownFile; start: number; offset: number } {
  const { path, start, size, offset } = readMappings('/proc', pid).find(
    each => each.path === process.execPath,
  )!
  const builder = new UnwindTableBuilder(settings)
  const fd = openSync(path, 'r')
  builder.add({ id: 1, pid, path, start, end: start + size, offset, dev: 0, inode: 0, unread: '' }, fd)
  closeSync(fd)
  return { known: builder.known(1)!, start, offset }
}

test('the memory of a process is let go of when it ended, and of what cannot be read at once', {
  skip: withoutRoot,
}, async () => {
  const child = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => 1, 1000)'])
  await new Promise(resolve => child.stdout.once('data', resolve))
  const pid = child.pid!
  const { known, start, offset } = programOf(pid)
  const processes = new RuntimeProcesses(() => ({ group: '', user: '0' }))
  const told: string[] = []
  const attach = (of: KnownFile) =>
    processes.attach({ pid, file: 1, start, offset }, of, reason => told.push(reason))
  assert.ok(attach(known)?.v8Shared)
  processes.closeEnded()
  assert.deepEqual([processes.size, memories()], [1, 1])
  const hostile = {
    attach: () => {
      throw new RangeError('hostile')
    },
  }
  assert.deepEqual(attach({ ...known, runtime: { unit: known.runtime!.unit, file: hostile } }), {})
  assert.deepEqual([told, processes.size], [['hostile'], 0])
  await until('it is let go of', 10_000, () => memories() === 0)
  attach(known)
  child.kill('SIGKILL')
  await until(
    () => 'the end of the process',
    10_000,
    () => {
      processes.closeEnded()
      return processes.size === 0
    },
  )
  await until('all are let go of', 10_000, () => memories() === 0)
})
