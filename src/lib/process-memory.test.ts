import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../test/helpers/program.ts'
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
