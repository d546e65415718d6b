// owns: host
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { mountBindfs } from '../../test/helpers/bindfs.ts'
import { until } from '../../test/helpers/program.ts'
import { silentLogger } from '../../test/helpers/silent-logger.ts'
import { ProcessAsker } from './process-asker.ts'
import { ProcessInspector } from './process-inspector.ts'
import { StringReader } from './process-strings.ts'

/** Starts programs as users. They end before what the test made after this. */
function runner(t: TestContext) {
  const children: ChildProcess[] = []
  t.after(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  return (user: number, command: string, args: readonly string[]): ChildProcess => {
    const child = spawn(command, args, { uid: user, stdio: ['pipe', 'pipe', 'inherit'], env: {} })
    children.push(child)
    return child
  }
}

/** Maps something else over pages of a file that it has changed: the kernel writes them first, and waits for the server. */
const mapOver = `
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
pages = libc.mmap(None, 65536, 3, 1, os.open(sys.argv[1], os.O_RDWR), 0)
ctypes.memset(pages, 65, 65536)
print('ready', flush=True)
sys.stdin.readline()
libc.mmap(pages, 65536, 3, 0x32, -1, 0)
time.sleep(600)
`

function isWaiting(pid: number): boolean {
  return /^State:\tD/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
}

async function said(child: ChildProcess, word: string): Promise<void> {
  let text = ''
  child.stdout!.on('data', chunk => {
    text += chunk
  })
  await until(word, 30_000, () => text.includes(word))
}

test('processes that keep the lock of their memory cost their user its strings, and the reader a moment', async t => {
  const clock = { ms: 0 }
  const asker = new ProcessAsker({ now: () => clock.ms, mostWaitMs: 100 })
  const strings = new StringReader(asker)
  const processes = new ProcessInspector({ log: silentLogger })
  t.after(() => {
    asker.close()
    processes.close()
  })
  const own = strings.of('/proc', process.pid)
  assert.deepEqual(own?.command, readFileSync('/proc/self/cmdline'))
  assert.deepEqual(own?.environment, readFileSync('/proc/self/environ'))
  assert.equal(strings.of('/proc', 2 ** 22)?.command.length, 0, 'there is none')

  const run = runner(t)
  const mount = await mountBindfs(t, 1)
  const hostile = Array.from({ length: 6 }, (_, i) => {
    writeFileSync(join(mount.directory, 'source', `page${i}`), Buffer.alloc(65_536))
    return run(0, 'python3', ['-c', mapOver, join(mount.directory, 'm0', `page${i}`)])
  })
  const neighbour = run(4242, 'sleep', ['600'])
  await Promise.all(hostile.map(child => said(child, 'ready')))
  await mount.hang()
  // Whatever becomes of this test: others on this host look at processes as well, and would wait.
  const guard = setTimeout(() => mount.answer(), 10_000)
  t.after(() => clearTimeout(guard))
  for (const { stdin } of hostile) stdin!.write('go\n')
  await until('they hold their locks', 10_000, () => hostile.every(({ pid }) => isWaiting(pid!)))
  const begun = performance.now()
  const read = hostile.map(child => strings.of('/proc', child.pid!))
  const tookMs = performance.now() - begun
  assert.deepEqual(read, Array(6).fill(undefined))
  assert.deepEqual(strings.lost, { late: 1, refused: 5, busy: 0, unavailable: 0 })
  assert.ok(tookMs < 5_000, `${tookMs} ms`)
  assert.equal(asker.held, 1)
  assert.equal(strings.of('/proc', neighbour.pid!), undefined, 'who asks has waited enough')
  assert.equal(strings.lost.busy, 1)
  assert.equal(strings.isFree('/proc', neighbour.pid!), false)
  assert.equal(await processes.isFree('/proc', hostile[1]!.pid!), false)
  assert.equal(await processes.isFree('/proc', hostile[2]!.pid!), false)
  assert.deepEqual(processes.lost, { late: 1, refused: 1, unavailable: 0 })
  assert.equal(await processes.isFree('/proc', neighbour.pid!), true)
  clock.ms += 5_001
  assert.ok(strings.isFree('/proc', neighbour.pid!))
  assert.equal(String(strings.of('/proc', neighbour.pid!)?.command), 'sleep\x00600\x00')

  mount.answer()
  await until('it was answered', 10_000, () => {
    strings.of('/proc', neighbour.pid!)
    return asker.held === 0
  })
  assert.equal(strings.of('/proc', hostile[1]!.pid!), undefined, 'its user is not asked at once')
  clock.ms += 10_001
  assert.match(String(strings.of('/proc', hostile[1]!.pid!)?.command), /^python3/)
})

test('a reader that ended is begun again, and one that is missing is counted', async t => {
  const clock = { ms: 0 }
  const asker = new ProcessAsker({ now: () => clock.ms })
  const strings = new StringReader(asker)
  t.after(() => asker.close())
  const known = () => strings.of('/proc', process.pid) !== undefined
  assert.ok(known())
  const [child = 0] = readFileSync('/proc/thread-self/children', 'latin1').trim().split(' ').map(Number)
  process.kill(child, 'SIGKILL')
  clock.ms += 1_001
  await until('another one answers', 10_000, () => {
    clock.ms += 1_001
    return known()
  })
  const none = new StringReader(new ProcessAsker({ program: undefined }))
  assert.equal(none.of('/proc', process.pid), undefined)
  assert.equal(none.lost.unavailable, 1)
})
