import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { isKernelThread } from './explain-target.ts'

test('threads of the kernel are told from processes', () => {
  assert.equal(isKernelThread(process.pid), false)
  assert.equal(isKernelThread(0x3fffff), false)
  // The kernel's daemon of threads, which a container does not see.
  const isDaemon = (pid: string) => /^\d+$/.test(pid) && commOf(pid) === 'kthreadd'
  for (const pid of readdirSync('/proc').filter(isDaemon)) assert.equal(isKernelThread(Number(pid)), true)
})

function commOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd()
  } catch {
    return '' // it ended
  }
}
