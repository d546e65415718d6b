import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import { svcProgram } from '../../../test/helpers/program-under-test.ts'
import { svc } from '../../../test/helpers/svc.ts'
import { startUiAgent } from '../../../test/helpers/ui-agent.ts'
import { defaults, loadConfig } from '../../config/index.ts'
import { schema } from '../../config/schema.ts'
import { leaves } from '../../foundation/schema/tree.ts'
import type { AgentDocument } from '../../view/api/ui/documents.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-config-'))
after(() => rmSync(directory, { recursive: true }))
/** No agent of the host answers there. */
const nowhere = `self_telemetry: {admin_socket: ${directory}/none.sock, listen: "127.0.0.1:1"}\n`

function file(name: string, text: string): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

function load(path: string) {
  return loadConfig({ path, explicit: true, env: {} })
}

test('the defaults have every key, are a valid file, and change nothing', async () => {
  const { code, out, talk } = await svc(['config', '--default'])
  assert.deepEqual([code, talk], [0, ''])
  for (const [key, leaf] of leaves(schema)) {
    assert.match(out, new RegExp(`^ *(# )?${key.split('.').at(-1)}:`, 'm'), key)
    assert.ok(out.replaceAll(/\n *# /g, ' ').includes(leaf.description), key)
  }
  const loaded = load(file('default.yaml', out))
  assert.deepEqual([loaded.problems, loaded.config], [[], defaults()])
  // A pipe of the shell, as people write it.
  const line = `"$0" "$1" config --default | "$0" "$1" --validate-config /dev/stdin`
  const checked = spawnSync('bash', ['-c', line, process.execPath, svcProgram], { encoding: 'utf8' })
  assert.deepEqual([checked.status, checked.stderr], [0, ''])
  assert.match(checked.stdout, /^configuration is valid\n/)
})

test('in an edited file of defaults the general keys still decide', async () => {
  const { out } = await svc(['config', '--default'])
  const edited = out
    .replace('\n  endpoint: ""', '\n  endpoint: h:1')
    .replace('\n  insecure: false', '\n  insecure: true')
    .replace('\nshutdown_timeout: 30s', '\nshutdown_timeout: 70s')
  const { config, problems } = load(file('edited.yaml', edited))
  assert.deepEqual(problems, [])
  assert.deepEqual(
    [config.otlp.logs.endpoint, config.otlp.traces.insecure, config.pipeline.export.otlp.endpoint],
    ['h:1', true, 'h:1'],
  )
  assert.equal(config.pipeline.operations.shutdown.timeout, 70_000)
})

test('the example is valid as it is, and with every line of it taken up', async () => {
  const { code, out } = await svc(['config', '--example'])
  assert.equal(code, 0)
  assert.deepEqual(load(file('example.yaml', out)).config, defaults())
  const { problems, config } = load(file('taken-up.yaml', out.replaceAll(/^#/gm, '')))
  assert.deepEqual([problems, config.otlp.endpoint], [[], 'collector.example.com:4317'])
})

test('the schema is that of the reference, and JSON is JSON', async () => {
  const schemaText = await svc(['config', '--schema'])
  assert.equal(JSON.parse(schemaText.out).title, 'svc configuration')
  const fallbacks = JSON.parse((await svc(['config', '--default', '--json'])).out)
  assert.equal(fallbacks['self_telemetry.ui.window'], '15m')
})

test('without an agent it is the file with where each value is from, secrets redacted', async () => {
  const path = file(
    'own.yaml',
    `${nowhere}otlp: {endpoint: "h:4317", headers: {authorization: hunter2}}\nlog_level: warn\n`,
  )
  const { code, out, talk } = await svc(['config', '--config', path], { env: { SVC_LOG_FORMAT: 'text' } })
  assert.equal(code, 0)
  assert.match(talk, /^no agent answers \(unix:\S+: no such socket.*\); showing \S+own\.yaml, as an agent/)
  assert.ok(out.includes(`log_level: warn  # ${path}:3:12\n`), out.slice(0, 500))
  assert.match(out, /^log_format: text {2}# SVC_LOG_FORMAT$/m)
  assert.match(out, /^shutdown_timeout: 30s {2}# default$/m)
  assert.doesNotMatch(out, /hunter2/)
  assert.equal(parse(out).otlp.endpoint, 'h:4317')

  const diff = await svc(['config', '--diff', '--config', path])
  assert.ok(diff.out.includes(`log_level: warn  # ${path}:3:12; default: "info"\n`), diff.out)
  assert.doesNotMatch(diff.out, /shutdown_timeout|hunter2/)
  const json = JSON.parse((await svc(['config', '--diff', '--json', '--config', path])).out)
  assert.deepEqual(
    json.keys.find(({ key }: { key: string }) => key === 'log_level'),
    {
      key: 'log_level',
      value: 'warn',
      default: 'info',
      origin: `${path}:3:12`,
    },
  )
})

test('a file that is wrong is told and nothing is printed', async () => {
  const { code, out, talk } = await svc(['config', '--config', file('wrong.yaml', `${nowhere}mod: agent\n`)])
  assert.deepEqual([code, out], [2, ''])
  assert.match(talk, /mod: unknown key; did you mean "mode"/)
  const two = await svc(['config', '--default', '--schema'])
  assert.equal(two.code, 2)
  assert.match(two.talk, /--default and --schema exclude each other/)
})

test('of an agent that runs it is what that has in effect', async t => {
  const page = {
    config: [
      {
        key: 'mode',
        value: 'agent',
        default: 'agent',
        origin: 'default',
        summary: '',
        requires_restart: true,
      },
      {
        key: 'otlp.endpoint',
        value: 'h:1',
        default: '""',
        origin: 'a.yaml:1:2',
        summary: '',
        requires_restart: false,
      },
    ],
  }
  const agent = await startUiAgent({ agent: async () => page as unknown as AgentDocument })
  t.after(() => agent.close())
  const { code, out, talk } = await svc(['config', '--config', agent.config])
  assert.deepEqual([code, out], [0, 'mode: agent  # default\n\notlp:\n  endpoint: h:1  # a.yaml:1:2\n'])
  assert.match(talk, /^from the agent at unix:/)
  const diff = await svc(['config', '--diff', '--config', agent.config])
  assert.equal(diff.out, 'otlp:\n  endpoint: h:1  # a.yaml:1:2; default: ""\n')
})
