// owns: ports
// A program that takes all places for TLS libraries: the others keep theirs, and nobody waits for its end.

import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { appendFileSync, chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { until } from '../helpers/program.ts'

const fixtures = join(import.meta.dirname, '../fixtures/tls')
const libraries = 140
const nobody = 65_534

const directory = mkdtempSync(join(tmpdir(), 'svc-places-'))
chmodSync(directory, 0o755)
const children: ChildProcess[] = []
after(async () => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(directory, { recursive: true })
})

interface Library {
  readonly path: string
  readonly processes: number
  readonly attached: boolean
  readonly reason: string
}

const program = join(directory, 'many-libraries')
execFileSync('gcc', ['-O1', '-o', program, join(fixtures, 'many-libraries.c'), '-ldl'])
const original = join(directory, 'libssl.so')
execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', original, join(fixtures, 'fake-tls.c')])

function copy(name: string): string {
  const path = join(directory, name)
  copyFileSync(original, path)
  appendFileSync(path, name)
  return path
}

/** A program of another user that has the libraries loaded. */
async function load(paths: readonly string[], uid: number): Promise<ChildProcess> {
  const child = spawn(program, paths, { stdio: ['pipe', 'pipe', 'inherit'], uid, gid: uid })
  children.push(child)
  const loaded = await new Promise<string>(resolve =>
    child.stdout!.once('data', text => resolve(String(text))),
  )
  assert.equal(Number(loaded), paths.length)
  return child
}

async function found(agent: AgentProcess): Promise<readonly Library[]> {
  const { tls } = await agent.document<{ tls: readonly Library[] }>('/status/ebpf')
  return tls.filter(({ path }) => path.startsWith(directory))
}

/** The longest time that /healthz took while something was done. */
async function slowest(agent: AgentProcess, work: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let done = false
  const asking = (async () => {
    while (!done) {
      const beganMs = performance.now()
      const { status } = await agent.get('/healthz')
      assert.equal(status, 200)
      longest = Math.max(longest, performance.now() - beganMs)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  })()
  await work()
  done = true
  await asking
  return longest
}

test("140 copies of a library leave a place for a neighbour, and neither their end nor the agent's takes long", async () => {
  const agent = await AgentProcess.start({ ports: [] })
  after(() => agent.stop())
  const hostile = await load(
    Array.from({ length: libraries }, (_, i) => copy(`libssl.so.${i}`)),
    nobody,
  )
  const own = copy('libssl-neighbour.so.3')
  const longestMs = await slowest(agent, async () => {
    await until('all places are taken', 30_000, async () => {
      const all = await found(agent)
      return all.some(({ reason }) =>
        /^limit of 128 probed files reached, \d+ of them for user 65534/.test(reason),
      )
    })
    await load([own], 0)
    await until('the neighbour has a place', 30_000, async () =>
      (await found(agent)).some(({ path, attached }) => path === own && attached),
    )
    hostile.kill('SIGKILL')
    await new Promise(resolve => setTimeout(resolve, 1000))
  })
  assert.ok(longestMs < 1000, `/healthz took ${longestMs} ms`)
  const { text } = await agent.get('/metrics')
  assert.match(text, /^svc_share_losses_total\{table="tls_libraries",reason="refused"\} [1-9]/m)
  assert.match(text, /^svc_share_losses_total\{table="tls_libraries",reason="taken"\} 1$/m)
  const all = await found(agent)
  assert.ok(all.filter(({ attached }) => attached).length > 100, 'many are to be let go at the end')
  const beganMs = performance.now()
  process.kill(agent.pid, 'SIGTERM')
  await agent.exited
  const tookMs = performance.now() - beganMs
  // The kernel, left to itself, takes more than ten seconds.
  assert.ok(tookMs < 5000, `the end took ${tookMs} ms`)
})
