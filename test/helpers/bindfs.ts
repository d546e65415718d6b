// owns: host
// File systems that a test can stop from answering.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { until } from './program.ts'

export interface Bindfs {
  /** Has `source`, which all of them show, and the mount points `m0`, `m1` and so on. */
  readonly directory: string
  /** Each serves a mount. */
  readonly servers: readonly ChildProcess[]
  /** Makes all of them hang. Resolves when no thread of them answers any more. */
  hang(): Promise<void>
  answer(): void
  /** Takes a mount away, whatever hangs in it, and mounts another one there. */
  remount(i: number): Promise<void>
}

/** Mounts file systems below a directory, until the test ends. */
export async function mountBindfs(t: TestContext, count: number): Promise<Bindfs> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-hang-'))
  const servers: ChildProcess[] = []
  const points = Array.from({ length: count }, (_, i) => join(directory, `m${i}`))
  const detach = (point: string) => spawnSync('umount', ['-l', point])
  const mount = async (point: string) => {
    servers.push(spawn('bindfs', ['-f', join(directory, 'source'), point], { stdio: 'ignore' }))
    await until('the file system is mounted', 60_000, () =>
      readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${point} `),
    )
  }
  t.after(async () => {
    for (const server of servers) server.kill('SIGCONT')
    points.forEach(detach)
    for (const server of servers)
      if (server.exitCode === null && server.signalCode === null)
        await new Promise(resolve => server.once('exit', resolve))
    rmSync(directory, { recursive: true })
  })
  mkdirSync(join(directory, 'source'))
  for (const point of points) {
    mkdirSync(point)
    await mount(point)
  }
  return {
    directory,
    servers,
    async hang() {
      for (const server of servers) server.kill('SIGSTOP')
      await until('all threads are stopped', 30_000, () => servers.every(({ pid }) => isStopped(pid!)))
    },
    answer() {
      for (const server of servers) server.kill('SIGCONT')
    },
    async remount(i) {
      detach(points[i]!)
      await mount(points[i]!)
    },
  }
}

function isStopped(pid: number): boolean {
  const states = readdirSync(`/proc/${pid}/task`).map(
    thread => /\) (\w)/.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1'))?.[1],
  )
  return states.every(state => state === 'T')
}
