// owns: ports
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, before, test } from 'node:test'
import type { Manifest } from '../../src/program/cli/diagnostics/bundle.ts'
import { AgentProcess } from '../helpers/agent-process.ts'
import { cleanEnvironment, svcProgram } from '../helpers/program-under-test.ts'

const token = 'a-token-that-nobody-may-see'

let directory: string
let agent: AgentProcess
let talk = ''
let manifest: Manifest
const files = new Map<string, string>()

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-diagnostics-e2e-'))
  agent = await AgentProcess.start({
    ports: [],
    config: { self_telemetry: { debug: true, auth: { enabled: true, bearer_token: token } } },
  })
  const file = join(directory, 'bundle.tar.gz')
  // An agent that does not answer for three seconds is asked at its next address.
  for (let tries = 0; tries < 2 && !talk.startsWith('querying the agent at unix:'); tries++)
    await collect(file)
  execFileSync('tar', ['-xzf', file, '-C', directory, '--strip-components=1'])
  rmSync(file)
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile()) files.set(relative(directory, path), readFileSync(path, 'latin1'))
  }
  manifest = JSON.parse(files.get('manifest.json')!) as Manifest
})

async function collect(file: string): Promise<void> {
  rmSync(file, { force: true })
  const child = spawn(
    process.execPath,
    [svcProgram, 'diagnostics', '--config', agent.file, '--output', file],
    {
      cwd: directory,
      env: cleanEnvironment(),
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  talk = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    talk += text
  })
  const code = await new Promise(resolve => child.on('close', resolve))
  assert.equal(code, 0, talk)
}

after(async () => {
  await agent?.stop()
  rmSync(directory, { recursive: true, force: true })
})

test('the agent answers at its admin socket, and in debug mode no file is missing', () => {
  assert.ok(manifest.agent.answered)
  assert.equal(manifest.agent.address, `unix:${agent.socket}`)
  assert.match(talk, /^querying the agent at unix:/)
  const all = [...manifest.files, ...manifest.missing].map(({ name }) => name)
  assert.equal(new Set(all).size, all.length)
  const wanted = [
    ...[
      'ready',
      'status',
      'config',
      'ebpf',
      'export',
      'discovery',
      'logs-status',
      'gpu',
      'pipeline',
      'vars',
    ].map(name => `agent/${name}.json`),
    ...['metrics.txt', 'log.ndjson', 'heap.pb.gz', 'goroutine.pb.gz'].map(name => `agent/${name}`),
    ...['configuration.json', 'doctor.txt', 'doctor.json', 'host/kernel.txt', 'host/system.txt'],
    `host/process-${agent.pid}.txt`,
  ]
  assert.deepEqual(all.toSorted(), wanted.toSorted())
  assert.deepEqual(manifest.missing, [])
  assert.ok(manifest.files.every(({ truncated }) => !truncated))
  assert.deepEqual(
    [...files.keys()].toSorted(),
    ['README.txt', 'manifest.json', ...manifest.files.map(({ name }) => name)].toSorted(),
  )
})

test('the documents are those of the agent', () => {
  const document = (name: string) => JSON.parse(files.get(name)!)
  assert.equal(document('agent/status.json').mode, 'agent')
  assert.equal(document('agent/config.json').self_telemetry.auth.bearer_token, '[REDACTED]')
  assert.ok(document('agent/ebpf.json').programs.length > 0)
  assert.ok('queues' in document('agent/export.json'))
  assert.equal(document('agent/ready.json').status, 'ready')
  assert.match(files.get('agent/metrics.txt')!, /^svc_ebpf_programs_loaded\{/m)
  const [first] = files.get('agent/log.ndjson')!.split('\n')
  assert.equal(JSON.parse(first!).msg, 'starting')
  assert.match(files.get(`host/process-${agent.pid}.txt`)!, /^CapEff:\s[0-9a-f]+$/m)
  const { keys } = document('configuration.json') as {
    keys: { key: string; value: string; origin: string }[]
  }
  const { value, origin } = keys.find(({ key }) => key === 'self_telemetry.auth.bearer_token')!
  assert.equal(value, '[REDACTED]')
  assert.ok(origin.startsWith(`${agent.file}:1:`), origin)
})

test('its token is nowhere', () => {
  for (const [name, text] of [...files, ['talk', talk]] as const) assert.ok(!text.includes(token), name)
})
