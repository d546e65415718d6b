// owns: ports
// What ended a run is known to the next one.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type AgentOptions, AgentProcess } from '../helpers/agent-process.ts'

const root = join(import.meta.dirname, '../..')
const directory = mkdtempSync(join(tmpdir(), 'svc-last-run-'))
after(() => rmSync(directory, { recursive: true }))

const config = {
  agent: { ebpf: { enabled: false } },
  pipeline: { export: { queue: { directory: join(directory, 'queue') } } },
}

interface Status {
  readonly last_run: { readonly ended: string; readonly cause: string; readonly reason: string } | null
}

function start(options: AgentOptions = {}): Promise<AgentProcess> {
  return AgentProcess.start({ ports: [], config, ...options })
}

/** As the unit's ExecStopPost= does it. */
function supervisorSays(result: string, code: string, status: string): void {
  const env = { STATE_DIRECTORY: directory, SERVICE_RESULT: result, EXIT_CODE: code, EXIT_STATUS: status }
  execFileSync(join(root, 'dist/svc-probe'), ['--ended'], { env })
}

test('a run that was killed, crashed or asked to stop is known to the next one', async () => {
  let agent = await start()
  assert.equal((await agent.document<Status>('/status')).last_run, null)
  agent.signal('SIGKILL')
  await agent.exited
  agent = await start()
  assert.equal((await agent.document<Status>('/status')).last_run?.cause, 'unknown')
  assert.match(agent.logText(), /last run ended abnormally: unknown cause/)
  agent.signal('SIGSEGV')
  await agent.exited
  supervisorSays('core-dump', 'dumped', 'SEGV')
  agent = await start()
  const last = (await agent.document<Status>('/status')).last_run
  assert.deepEqual([last?.ended, last?.cause, last?.reason], ['fault', 'crash', 'crashed (SIGSEGV)'])
  await agent.stop()
  agent = await start()
  assert.equal((await agent.document<Status>('/status')).last_run?.ended, 'clean')
  const { text } = await agent.get('/metrics')
  for (const cause of ['unknown', 'crash', 'stopped'])
    assert.match(text, new RegExp(`^svc_previous_runs_total\\{cause="${cause}"\\} 1$`, 'm'))
  await agent.stop()
})

test('a heap that was full is known for certain, and what the runtime reports of it holds no secret', async () => {
  rmSync(directory, { recursive: true })
  mkdirSync(directory, { mode: 0o700 })
  const leak = join(directory, 'leak.cjs')
  writeFileSync(
    leak,
    `process.on('SIGUSR2', () => { for (const kept = []; ; ) kept.push({ number: kept.length, text: 'x' + kept.length }) })`,
  )
  const secret = 'secret-of-the-environment'
  const full = await start({
    env: { NODE_OPTIONS: `--require ${leak}`, TEST_TOKEN: secret },
    config: { ...config, limits: { memory: '160Mi' } },
    shipped: true,
  })
  full.signal('SIGUSR2')
  assert.equal((await full.exited).signal, 'SIGABRT')
  const report = join(directory, 'fatal.json')
  assert.doesNotMatch(readFileSync(report, 'utf8'), new RegExp(secret))
  supervisorSays('core-dump', 'dumped', 'ABRT')
  const agent = await start()
  const last = (await agent.document<Status>('/status')).last_run
  assert.deepEqual([last?.cause, last?.reason], ['heap_limit', 'JavaScript heap full'])
  assert.ok(!readdirSync(directory).includes('fatal.json'))
  await agent.stop()
})
