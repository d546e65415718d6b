// owns: host
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { startInnerAgent } from '../../../test/helpers/inner-agent.ts'
import { examine } from '../doctor/examine.ts'
import { yamlOf } from './agent.ts'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end()
})

async function start(env: Record<string, string> = {}) {
  const { agent, loaded } = await startInnerAgent({
    SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:0',
    SVC_SELF_TELEMETRY_ADMIN_SOCKET: '',
    SVC_AGENT_EBPF_ENABLED: 'false',
    SVC_AGENT_NODEEXPORTER_LISTEN_ADDRESS: '127.0.0.1:0',
    SVC_AGENT_DISCOVERY_DETECT_CLOUD: 'false',
    ...env,
  })
  open.push(() => agent.stop())
  return { source: agent.view.ui!, loaded }
}

test('the agent finds what svc doctor finds, but does not load its programs again', async () => {
  const { source, loaded } = await start()
  const { checks } = await source.doctor()
  const own = new Map(checks.map(check => [check.name, check]))
  // Those that take no second of the kernel's, and nobody else's answer.
  for (const topic of ['runtime', 'processes', 'configuration', 'commands'] as const)
    for (const { title, checks: found } of (await examine(loaded, { topic, isOfFile: true })).groups) {
      // Of these the agent knows by itself, and the command by no one.
      const same = checks.filter(
        ({ group, name }) => group === title && name !== 'last run' && name !== 'event loop',
      )
      assert.deepEqual(
        same.map(({ name, state }) => [name, state]),
        found.map(({ name, state }) => [name, state]),
      )
    }
  const programs = own.get('capture programs')!
  assert.equal(programs.state, 'note')
  assert.match(programs.detail, /run svc doctor traces/)
  const counts = own.get('connection programs')!
  assert.deepEqual([counts.group, counts.state], ['Kernel counts', 'note'])
  assert.match(counts.detail, /run svc doctor kernel/)
  assert.match(own.get('event loop')!.detail, /^the longest turn took \d+ ms/)
  assert.match(own.get('address')!.detail, /this running agent/)
  assert.match(own.get('collectors')!.detail, /^\d+ running$/)
  const lacking = checks.filter(({ state }) => state === 'missing' || state === 'limited')
  for (const { name, hint } of lacking) assert.notDeepEqual(hint, [], name)
})

test('who asks together, or soon again, gets one answer', async () => {
  const { source } = await start({ SVC_AGENT_NODEEXPORTER_ENABLED: 'false' })
  const [first, second] = await Promise.all([source.doctor(), source.doctor()])
  assert.equal(first, second)
  assert.equal(await source.doctor(), first)
})

test('the page of the agent has every key with its default, where its value is from, and no secret', async () => {
  const { source } = await start({
    SVC_LOG_LEVEL: 'warn',
    SVC_OTLP_HEADERS: 'authorization=Bearer abracadabra',
    SVC_AGENT_NODEEXPORTER_ENABLED: 'false',
  })
  const page = await source.agent()
  const text = JSON.stringify(page)
  assert.ok(!text.includes('abracadabra'))
  const key = (name: string) => page.config.find(each => each.key === name)!
  assert.deepEqual(
    [
      key('log_level').value,
      key('log_level').default,
      key('log_level').origin,
      key('log_level').requires_restart,
    ],
    ['warn', 'info', 'SVC_LOG_LEVEL', false],
  )
  assert.equal(key('shutdown_timeout').value, '30s')
  assert.equal(key('shutdown_timeout').origin, 'default')
  assert.equal(key('mode').requires_restart, true)
  assert.equal(page.pid, process.pid)
  assert.equal(page.config_file, '')
  assert.deepEqual(page.reload, { last: '', requires_restart: [] })
  const { memory } = page
  assert.ok(memory.resident > memory.anonymous && memory.anonymous > 0 && memory.limit > 0)
  const held = memory.tables.largest.map(({ bytes }) => bytes)
  assert.deepEqual(
    held,
    [...held].sort((a, b) => b - a),
    'the largest first',
  )
  assert.ok(held.length > 5)
  assert.deepEqual([page.programs, page.maps, page.attachments], [[], [], []])
})

test('values are written as YAML reads them', () => {
  const check = (value: unknown, want: string) => assert.equal(yamlOf(value), want)
  check('info', 'info')
  check('/etc/svc/config.yaml', '/etc/svc/config.yaml')
  check('15m', '15m')
  check('', '""')
  check('yes', '"yes"')
  check('null', '"null"')
  check('12', '"12"')
  check('1e3', '"1e3"')
  check(':19090', '":19090"')
  check('a: b', '"a: b"')
  check(true, 'true')
  check([80, 443], '[80,443]')
  check({}, '{}')
})
