// owns: host
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { startInnerAgent } from '../../../test/helpers/inner-agent.ts'
import { startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { loadConfig } from '../../config/index.ts'
import { type Diagnosis, examine, exitCodeFor } from './examine.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-ask-'))
after(() => rmSync(directory, { recursive: true }))

/** What an operator has here: a socket where the agent may answer, and a configuration that is not the agent's. */
function local(socket: string) {
  const path = join(directory, 'config.yaml')
  const queue = `pipeline: {export: {queue: {directory: ${join(directory, 'queue')}}}}\n`
  writeFileSync(path, `self_telemetry: {listen: "127.0.0.1:0", admin_socket: ${socket}}\n${queue}`)
  return loadConfig({ path, explicit: true, env: {} })
}

function outcomes({ groups }: Diagnosis, name: string) {
  return groups.flatMap(({ checks }) => checks).filter(check => check.name === name)
}

/** An agent that answers at `socket`, and a receiver that it sends to with a secret. */
async function reporting(t: TestContext, socket: string, more: Readonly<Record<string, string>>) {
  const receiver = await startReceiver()
  t.after(() => receiver.close())
  const inner = await startInnerAgent({
    SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:0',
    SVC_SELF_TELEMETRY_ADMIN_SOCKET: socket,
    SVC_AGENT_NODEEXPORTER_ENABLED: 'false',
    SVC_AGENT_EBPF_ENABLED: 'false',
    SVC_OTLP_ENDPOINT: `127.0.0.1:${receiver.port}`,
    SVC_OTLP_INSECURE: 'true',
    SVC_OTLP_HEADERS: 'authorization=Bearer abracadabra',
    ...more,
  })
  t.after(() => inner.agent.stop())
  return { ...inner, receiver }
}

test('the agent is asked first, with its secrets and its settings; what it did not try is tried here', async t => {
  const socket = join(directory, 'agent.sock')
  const { receiver } = await reporting(t, socket, { SVC_AGENT_DISCOVERY_DETECT_CLOUD: 'false' })
  // By the file nothing is sent anywhere.
  const diagnosis = await examine(local(socket))
  const { sources } = diagnosis
  assert.equal(sources.address, `unix:${socket}`)
  assert.deepEqual([sources.mode, sources.configuration, sources.why], ['agent', 'running', ''])
  assert.deepEqual(sources.answered, ['status', 'configuration', 'tries'])
  const [taken] = outcomes(diagnosis, 'receiver')
  assert.deepEqual([taken!.by, taken!.state], ['agent', 'ok'], taken!.detail)
  assert.match(taken!.detail, new RegExp(`127\\.0\\.0\\.1:${receiver.port} accepted an empty request`))
  assert.ok(receiver.requests.every(({ headers }) => headers.authorization === 'Bearer abracadabra'))
  // The agent does not load its programs again; the command does, and knows from the agent that nobody needs them.
  const [programs] = outcomes(diagnosis, 'capture programs')
  assert.equal(programs!.by, 'here')
  if (programs!.state !== 'ok') assert.match(programs!.detail, /not needed: agent\.ebpf is off/)
  assert.equal(outcomes(diagnosis, 'event loop')[0]!.by, 'agent')
  assert.doesNotMatch(JSON.stringify(diagnosis), /abracadabra/)
  const [settings] = outcomes(diagnosis, 'settings')
  assert.deepEqual([settings!.by, settings!.detail], ['here', `${join(directory, 'config.yaml')} is valid`])

  const ofFile = await examine(local(socket), { topic: 'export', isOfFile: true })
  assert.deepEqual(ofFile.sources.answered, ['status'])
  const [none] = outcomes(ofFile, 'receiver')
  assert.deepEqual([none!.by, none!.fault], [undefined, 'none'])
})

test('with what the agent runs, secrets and all, is tried here what an agent without a page does not try', async t => {
  const socket = join(directory, 'pageless.sock')
  const { loaded, receiver } = await reporting(t, socket, { SVC_SELF_TELEMETRY_UI_ENABLED: 'false' })
  const same = await examine(loaded, { topic: 'export' })
  assert.deepEqual(same.sources.answered, ['status', 'configuration'])
  assert.match(same.sources.why, /\/ui\/api\/doctor: self_telemetry\.ui\.enabled is false/)
  const [taken] = outcomes(same, 'receiver')
  assert.deepEqual([taken!.by, taken!.state], ['here', 'ok'], taken!.detail)
  assert.ok(receiver.requests.length > 0)
  assert.ok(receiver.requests.every(({ headers }) => headers.authorization === 'Bearer abracadabra'))
  // By another file it is the agent's configuration that counts, and that has no secrets.
  const [unknown] = outcomes(await examine(local(socket), { topic: 'export' }), 'receiver')
  assert.equal(unknown!.state, 'unknown')
})

/** Something that answers at the socket where the agent should. */
async function answering(t: TestContext, answer: RequestListener): Promise<string> {
  const socket = join(mkdtempSync(join(directory, 'server-')), 'a.sock')
  const server = createServer(answer).listen(socket)
  await new Promise(resolve => server.once('listening', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return socket
}

test('what answers may say anything: it is bounded, and nothing that it names is used with a secret', async t => {
  const check = async (answers: Record<string, string>, topic: 'export' | 'scraping' | 'runtime') => {
    const socket = await answering(t, ({ url }, response) => response.end(answers[url!] ?? '{}'))
    return examine(local(socket), { topic })
  }
  const nonsense = await check({ '/status': '[1', '/config': 'null', '/ui/api/doctor': '"x"' }, 'runtime')
  assert.deepEqual(nonsense.sources.answered, [])
  assert.match(
    nonsense.sources.why,
    /\/status: is not JSON; \/config: is not a JSON object; \/ui\/api\/doctor: is not/,
  )
  assert.ok(nonsense.groups[0]!.checks.length > 0)

  const deep = await check({ '/config': `{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}` }, 'runtime')
  assert.match(deep.sources.why, /^\/config: is not a JSON object$/)

  const hostile = {
    '/status': JSON.stringify({
      version: 7,
      degraded: [null, 1, { subsystem: 'a' }],
      event_loop: null,
      last_run: null,
    }),
    '/config': JSON.stringify({
      otlp: { endpoint: '127.0.0.1:1', headers: { a: `\${file:/etc/shadow}` } },
      collectors: { prometheus: { scrape_configs: [{ job_name: 'a', bearer_token_file: '/etc/shadow' }] } },
      unknown: 1,
    }),
    '/ui/api/doctor': JSON.stringify({
      checks: [
        null,
        { name: 'receiver', state: 'broken', detail: 'x' },
        { name: '__proto__', state: 'ok', detail: 'x' },
        { name: 'disk queue', state: 'limited', fault: 'constructor', detail: 'y'.repeat(10_000), lose: '' },
      ],
    }),
  }
  const told = await check(hostile, 'export')
  const [untold] = outcomes(told, 'receiver')
  assert.deepEqual([untold!.state, untold!.by], ['unknown', 'here'])
  assert.match(untold!.detail, /it needs secrets that the agent does not show/)
  const [disk] = outcomes(told, 'disk queue')
  assert.deepEqual([disk!.by, disk!.detail.length, disk!.hints], ['agent', 2000, undefined])
  assert.deepEqual(told.degraded, [])
})

test('an answer that is endless, late or refused leaves all to be tried here', async t => {
  const flood = await answering(t, ({ url }, response) => {
    if (url === '/healthz') return response.end('{}')
    const more = () => {
      while (response.write('x'.repeat(65_536)));
      response.once('drain', more)
    }
    more()
  })
  const flooded = await examine(local(flood), { topic: 'runtime' })
  assert.deepEqual(flooded.sources.answered, [])
  assert.match(flooded.sources.why, /\/status: is too large/)
  const closed = await answering(t, ({ url }, response) => {
    response.statusCode = url === '/healthz' ? 200 : url === '/config' ? 404 : 401
    response.end(url === '/status' ? '{"message":"no","details":{"hint":"svc ui"}}' : '{}')
  })
  const refused = await examine(local(closed), { topic: 'runtime' })
  assert.match(
    refused.sources.why,
    /\/status: needs root or the user of svc.*\/config: is not served.*\/ui\/api\/doctor: needs a token/,
  )
  assert.ok(refused.groups[0]!.checks.length > 0)
  const none = await examine(local(join(directory, 'none.sock')), { topic: 'runtime' })
  assert.equal(none.sources.address, '')
  assert.match(none.sources.why, /none\.sock: no such socket/)
})

test('the exit code tells a receiver that takes nothing from all else', () => {
  const check = (states: [name: string, state: 'ok' | 'missing'][], degraded: string[], want: number) => {
    const checks = states.map(([name, state]) => ({ name, state, detail: '' }))
    const ok = degraded.length === 0 && states.every(([, state]) => state === 'ok')
    const found = {
      ok,
      degraded: degraded.map(subsystem => ({ subsystem, reason: '', hint: '' })),
      groups: [{ topic: 'export', title: '', checks }],
    } as unknown as Diagnosis
    assert.equal(exitCodeFor(found), want)
  }
  check([['receiver', 'ok']], [], 0)
  check(
    [
      ['receiver', 'missing'],
      ['receiver', 'missing'],
      ['BTF', 'ok'],
    ],
    [],
    5,
  )
  check(
    [
      ['receiver', 'missing'],
      ['BTF', 'missing'],
    ],
    [],
    1,
  )
  check([['receiver', 'missing']], ['export of logs'], 5)
  check([['receiver', 'missing']], ['logs'], 1)
  check([['receiver', 'ok']], ['export of logs'], 5)
})
