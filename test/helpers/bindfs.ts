// File systems that a test can stop from answering.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { until } from './program.ts'

/** Mounts `m0`, `m1` and so on below a directory, each by a server of its own, which SIGSTOP makes hang. */
export async function mountBindfs(
  t: TestContext,
  count: number,
): Promise<{ directory: string; servers: ChildProcess[] }> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-hang-'))
  const servers: ChildProcess[] = []
  t.after(async () => {
    for (const [i, server] of servers.entries()) {
      server.kill('SIGCONT')
      const ended = new Promise(resolve => server.once('exit', resolve))
      spawn('umount', ['-l', join(directory, `m${i}`)])
      await ended
    }
    rmSync(directory, { recursive: true })
  })
  mkdirSync(join(directory, 'source'))
  for (let i = 0; i < count; i++) {
    const point = join(directory, `m${i}`)
    mkdirSync(point)
    servers.push(spawn('bindfs', ['-f', join(directory, 'source'), point], { stdio: 'ignore' }))
    await until('the file system is mounted', 5000, () =>
      readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${point} `),
    )
  }
  return { directory, servers }
}
