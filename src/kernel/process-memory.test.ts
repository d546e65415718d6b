// owns: host
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { mountBindfs } from '../../test/helpers/bindfs.ts'
import { withoutBindfs } from '../../test/helpers/host-needs.ts'
import { until } from '../../test/helpers/program.ts'
import { ProcessAsker } from './process-asker.ts'
import { ProcessMemory, pointerAt } from './process-memory.ts'

/** The address at which a process has its program's header, as soon as that is in its memory: a moment after execve. */
async function programStart(pid: number, memory: ProcessMemory): Promise<number> {
  let start = 0
  await until(`the program of ${pid} is in memory`, 60_000, () => {
    start = parseInt(readFileSync(`/proc/${pid}/maps`, 'latin1'), 16)
    return memory.u8(start) === 0x7f
  })
  return start
}

test('the memory of another process is read, in pieces and as numbers', async () => {
  const child = spawn('sleep', ['100'])
  const memory = ProcessMemory.open(child.pid!)!
  try {
    await once(child, 'spawn')
    const start = await programStart(child.pid!, memory)
    assert.equal(memory.read(start, 4)?.toString('latin1'), '\x7fELF')
    assert.equal(memory.u8(start), 0x7f)
    assert.equal(memory.u32(start), 0x464c457f)
    // Elf64_Ehdr: e_phoff is 64.
    assert.equal(memory.u64(start + 32), 64)
    assert.equal(memory.pointer(start + 32), 64)
  } finally {
    child.kill('SIGKILL')
    memory.close()
  }
})

test('what cannot be read is undefined and throws nothing', async () => {
  const child = spawn('sleep', ['100'])
  await once(child, 'spawn')
  const memory = ProcessMemory.open(child.pid!)!
  const start = await programStart(child.pid!, memory)
  const wrong = [0, -1, 1.5, 2 ** 47, 2 ** 47 - 4, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, 4096]
  for (const address of wrong) {
    assert.equal(memory.read(address, 8), undefined, String(address))
    assert.equal(memory.u64(address), undefined)
    assert.equal(memory.pointer(address), 0)
  }
  for (const length of [0, -1, 65_537, Number.NaN]) assert.equal(memory.read(start, length), undefined)
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.equal(memory.read(start, 4), undefined, 'its process ended')
  memory.close()
  memory.close()
  assert.equal(memory.read(start, 4), undefined, 'it is closed')
  assert.equal(ProcessMemory.open(2 ** 30), undefined, 'there is no such process')
})

test('the memory of a program that gave way to another is not that of the other', async () => {
  const child = spawn('sh', ['-c', 'read line; exec sleep 100'], { stdio: ['pipe', 'ignore', 'ignore'] })
  await once(child, 'spawn')
  const name = () => readFileSync(`/proc/${child.pid}/comm`, 'latin1').trim()
  while (name() !== 'sh') await sleep(5)
  const memory = ProcessMemory.open(child.pid!)!
  try {
    await programStart(child.pid!, memory)
    child.stdin.write('\n')
    while (name() !== 'sleep') await sleep(5)
    const other = ProcessMemory.open(child.pid!)!
    const start = await programStart(child.pid!, other)
    other.close()
    assert.equal(memory.u8(start), undefined)
  } finally {
    child.kill('SIGKILL')
    memory.close()
  }
})

test('a pointer that points at nothing in user space is 0', () => {
  const bytes = Buffer.alloc(16, 0xff)
  bytes.writeBigUInt64LE(0x7fff_ffff_ffffn, 8)
  assert.equal(pointerAt(bytes, 0), 0)
  assert.equal(pointerAt(bytes, 8), 0x7fff_ffff_ffff)
})

test('pages that a process does not have in memory are not read: who fills them may never do so', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-memory-'))
  const program = join(directory, 'program')
  const source = `#include <stdio.h>
    #include <sys/mman.h>
    #include <unistd.h>
    int main(void) {
      char *at = mmap(0, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      madvise(at, 1 << 18, MADV_NOHUGEPAGE);
      at[0] = 7;
      printf("%p\\n", (void *)at);
      fflush(stdout);
      pause();
    }`
  execFileSync('gcc', ['-o', program, '-xc', '-'], { input: source })
  const child = spawn(program)
  try {
    const [text] = await once(child.stdout, 'data')
    const at = Number.parseInt(String(text).trim(), 16)
    const running = ProcessMemory.open(child.pid!)!
    assert.equal(running.u8(at), 7)
    assert.equal(running.u8(at + 2 ** 17), undefined)
    assert.equal(running.read(at, 2 ** 16), undefined)
    running.close()
  } finally {
    child.kill('SIGKILL')
    rmSync(directory, { recursive: true })
  }
})

/** Has at one address by turns a page of its own and one of a file, as fast as it can. */
const swapping = `#include <fcntl.h>
  #include <stdio.h>
  #include <sys/mman.h>
  int main(int count, char **arguments) {
    int file = open(arguments[1], O_RDONLY);
    volatile char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%p\\n", (void *)page);
    fflush(stdout);
    for (;;) {
      *page = 7;
      mmap((void *)page, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
      mmap((void *)page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
  }`

test('a page that is exchanged for one whose server never answers costs its reader a moment, and its user the next ones', {
  skip: withoutBindfs,
}, async t => {
  const clock = { ms: 0 }
  const asker = new ProcessAsker({ now: () => clock.ms })
  const children: ChildProcess[] = []
  t.after(() => {
    for (const child of children) child.kill('SIGKILL')
    asker.close()
  })
  const mount = await mountBindfs(t, 1)
  writeFileSync(join(mount.directory, 'source/page'), Buffer.alloc(4096, 9))
  const program = join(mount.directory, 'swapping')
  execFileSync('gcc', ['-O1', '-o', program, '-xc', '-'], { input: swapping })
  const child = spawn(program, [join(mount.directory, 'm0/page')])
  const neighbour = spawn('sleep', ['100'], { uid: 4242 })
  children.push(child, neighbour)
  const [text] = await once(child.stdout, 'data')
  const at = Number.parseInt(String(text).trim(), 16)
  const memory = ProcessMemory.open(child.pid!, '/proc', asker)!
  const other = ProcessMemory.open(neighbour.pid!, '/proc', asker)!
  const start = await programStart(neighbour.pid!, other)
  await mount.hang()
  let slowestMs = 0
  for (const endMs = performance.now() + 10_000; asker.lost.late === 0 && performance.now() < endMs; ) {
    const beganMs = performance.now()
    assert.ok([undefined, 0, 7].includes(memory.u8(at)))
    slowestMs = Math.max(slowestMs, performance.now() - beganMs)
  }
  assert.ok(slowestMs < 10_000, `${slowestMs} ms`)
  assert.equal(asker.held, 1)
  assert.equal(memory.u8(at), undefined)
  assert.deepEqual(asker.lost, { late: 1, refused: 1, busy: 0, unavailable: 0 })
  assert.equal(other.u8(start), 0x7f, 'another user is read on')
  mount.answer()
  await until('it was answered', 10_000, () => other.u8(start) === 0x7f && asker.held === 0)
  clock.ms += 10_001
  await until('it is read again', 10_000, () => memory.u8(at) !== undefined)
})

test('what was open is open again when svc-probe ended, unless another program runs by then', async () => {
  const asker = new ProcessAsker()
  const probes = () => readFileSync('/proc/thread-self/children', 'latin1').trim().split(' ').map(Number)
  const child = spawn('sh', ['-c', 'read line; exec sleep 100'], { stdio: ['pipe', 'ignore', 'ignore'] })
  try {
    const before = probes()
    const memory = ProcessMemory.open(child.pid!, '/proc', asker)!
    const start = await programStart(child.pid!, memory)
    const end = async () => {
      for (const pid of probes().filter(pid => !before.includes(pid))) process.kill(pid, 'SIGKILL')
      await sleep(1_000) // no other is started before
    }
    await end()
    await until('another svc-probe reads it', 10_000, () => memory.u8(start) === 0x7f)
    const name = () => readFileSync(`/proc/${child.pid}/comm`, 'latin1').trim()
    child.stdin.write('\n')
    while (name() !== 'sleep') await sleep(5)
    await end()
    await until('the other program may be read', 10_000, () => {
      const other = ProcessMemory.open(child.pid!, '/proc', asker)
      other?.close()
      return other !== undefined
    })
    assert.equal(memory.u8(start), undefined)
    memory.close()
  } finally {
    child.kill('SIGKILL')
    asker.close()
  }
})
