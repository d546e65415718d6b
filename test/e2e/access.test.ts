// Who may read what: the agent as a process, asked by a user without rights, from another host, and by a browser's means.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { AgentProcess } from '../helpers/agent-process.ts'
import { ask } from '../helpers/api-server.ts'
import { LiveBrowser } from '../helpers/browser.ts'
import { withoutChromium } from '../helpers/host-needs.ts'
import { NetworkNamespace, withoutNamespaces } from '../helpers/network-namespace.ts'
import { freePort, until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'
import { runAs, type Step, type Walk, walkAs, walkScript, ways } from '../helpers/stranger.ts'
import { svc } from '../helpers/svc.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root, to be somebody else'
const nobody = 65_534
const open = ['/healthz', '/livez', '/ready', '/readyz', '/ui', '/ui/overview']
const forAnybody = ['/metrics', '/openapi.json', '/config'].concat(
  '/status',
  '/status/ebpf',
  '/status/export',
  '/status/discovery',
)
const secretArgument = 'argument-that-is-a-secret-6b1f'
const secretVariable = 'variable-that-is-a-secret-91cc'
const secrets = [secretArgument, secretVariable]

let agent: AgentProcess
let paths: string[]
/** Of the host metrics, with what is there. */
let metricsPort = 0
const metricsPaths = ['/metrics', '/metrics/description', '/', '/health', '/ready', '/live']
let pid = 0
const ends: (() => unknown)[] = []

before(async () => {
  if (skip) return
  const script =
    "require('http').createServer((_, r) => r.end()).listen(0, '127.0.0.1', () => console.log('up'))"
  const server = spawn(process.execPath, ['-e', script, secretArgument], {
    env: { ...process.env, SECRET: secretVariable },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  ends.push(() => server.kill('SIGKILL'))
  await once(server.stdout, 'data')
  pid = server.pid!
  metricsPort = await freePort()
  agent = await AgentProcess.start({
    config: {
      agent: {
        ebpf: { enabled: false },
        discovery: { detect_cloud: false },
        nodeexporter: { listen_address: `:${metricsPort}`, ebpf_enhanced: false },
      },
      self_telemetry: { debug: true },
    },
    host: '',
  })
  ends.push(() => agent.stop())
  const described = JSON.parse((await ask(agent.port, '/openapi.json')).text) as {
    paths: Record<string, unknown>
  }
  paths = [
    ...Object.keys(described.paths),
    ...['/ui', '/ui/overview', '/', '/nothing', '/admin', '/debug', '/ui/api', '/status/', '/metrics/'],
    `/status/processes?pid=${pid}`,
    '/logs?follow=1',
    '/ui/api/tap?follow=1',
  ]
})
after(async () => {
  for (const end of ends.reverse()) await end()
})

function walkOf(host: string): Walk {
  return { host, port: agent.port, paths, secrets, isWhole: soak }
}

function metricsWalkOf(host: string): Walk {
  const paths = [...metricsPaths, '/nothing', '/healthz', '/status', '/metrics/']
  return { host, port: metricsPort, paths, secrets, isWhole: soak }
}

/** What is at the port of the host metrics is for anybody who asks by a name of this host. */
function holdMetrics(steps: readonly Step[]): void {
  assert.ok(steps.length > 10 * ways.length)
  for (const step of steps) {
    const { way, method, path, status, secret } = step
    const at = JSON.stringify(step)
    assert.equal(secret, '', at)
    assert.ok([200, 204, 400, 403, 404, 405].includes(status), at)
    const isProbe = ['/health', '/ready', '/live'].includes(path)
    if (way === 'foreign host' || way === 'rebound name' || way === 'absolute')
      assert.equal(status === 403, !isProbe, at)
    if (way !== 'plain' && way !== 'HTTP/1.0' && way !== 'absolute local') continue
    if (method === 'GET') assert.equal(status, metricsPaths.includes(path) ? 200 : 404, at)
  }
}

function hold(steps: readonly Step[]): void {
  assert.equal(steps.length, paths.length * (soak ? 5 * ways.length : ways.length + 4))
  for (const step of steps) {
    const { way, method, path, status, size, secret } = step
    const at = JSON.stringify(step)
    assert.equal(secret, '', at)
    const isPublic = [...open, ...forAnybody].includes(path)
    const reads = method === 'GET' || method === 'HEAD'
    // What a path takes is no secret: it stands in the description.
    if (status === 204) assert.ok(method === 'OPTIONS' && size === 0, at)
    else if (status === 200 || status === 503) assert.ok(isPublic && reads, at)
    else assert.ok([400, 401, 403, 404, 405].includes(status), at)
    if (way === 'foreign host' || way === 'rebound name' || way === 'absolute')
      assert.ok(status === 403 || open.slice(0, 4).includes(path), at)
    if (way !== 'plain' && way !== 'kept' && way !== 'HTTP/1.0' && way !== 'upgrade' && way !== 'cookie')
      continue
    if (reads && isPublic) assert.ok(status === 200 || (status === 503 && path.startsWith('/ready')), at)
  }
  const refused = steps.filter(
    ({ way, method, status }) => way === 'plain' && method === 'GET' && status === 401,
  )
  const own = ['/logs', '/profiles', '/status/processes', '/status/logs', '/status/gpu', '/status/targets']
  own.push('/admin/logs', '/admin/ui', '/debug/vars', '/ui/api/overview', '/ui/api/agent')
  for (const path of own)
    assert.ok(
      refused.some(step => step.path === path),
      path,
    )
}

test('a user without rights gets nothing but what is for anybody', { skip }, () => {
  hold(walkAs(nobody, walkOf('127.0.0.1')))
  holdMetrics(walkAs(nobody, metricsWalkOf('127.0.0.1')))
})

test('neither does anybody on another host, root included', { skip: skip || withoutNamespaces }, t => {
  const near = `svct${process.pid % 100_000}`
  const namespace = new NetworkNamespace(t, [
    'link set lo up',
    `link add name far type veth peer name ${near} netns ${process.pid}`,
    'address add 198.18.77.2/30 dev far',
    'link set far up',
  ])
  execFileSync('ip', ['address', 'add', '198.18.77.1/30', 'dev', near])
  execFileSync('ip', ['link', 'set', near, 'up'])
  hold(namespace.run(walkScript(walkOf('198.18.77.1'))) as readonly Step[])
  holdMetrics(namespace.run(walkScript(metricsWalkOf('198.18.77.1'))) as readonly Step[])
})

test('root sees all of it', { skip }, async () => {
  const { text } = await ask(agent.port, `/status/processes?pid=${pid}`)
  assert.match(text, new RegExp(secretArgument))
  for (const path of ['/admin/logs', '/status/logs', '/debug/vars', '/ui/api/agent'])
    for (const host of ['127.0.0.1', '::1'])
      assert.equal((await ask(agent.port, path, { host })).status, 200, `${path} at ${host}`)
  const passedOn = { headers: { 'x-forwarded-for': '10.0.0.1' } }
  assert.equal((await ask(agent.port, '/admin/logs', passedOn)).status, 401)
})

test('a name that a reload allows is answered at both listeners', { skip }, async () => {
  const headers = { host: 'lb.example' }
  const statuses = () =>
    Promise.all(
      [agent.port, metricsPort].map(async port => (await ask(port, '/metrics', { headers })).status),
    )
  assert.deepEqual(await statuses(), [403, 403])
  agent.configure({ self_telemetry: { debug: true, allowed_hosts: ['lb.example'] } })
  agent.signal('SIGHUP')
  await until('the name is known', 20_000, async () => (await statuses()).join() === '200,200')
})

test('svc ui prints a link that opens the page, to root alone, and no log has it', { skip }, async () => {
  const { code, out } = await svc(['ui', '--config', agent.file])
  assert.equal(code, 0)
  const { origin, pathname, hash } = new URL(out.trim())
  assert.deepEqual([origin, pathname], [`http://127.0.0.1:${agent.port}`, '/ui'])
  const key = /^#key=([\w-]{32})$/.exec(hash)![1]!
  assert.deepEqual(JSON.parse((await svc(['ui', '--json', '--config', agent.file])).out), { url: out.trim() })
  assert.match(agent.logText(), /sudo svc ui/)
  for (const text of [agent.logText(), (await ask(agent.port, '/admin/logs')).text])
    assert.ok(!text.includes(key))
  // What a browser does with it, as nobody.
  const script = `
    const url = 'http://127.0.0.1:${agent.port}'
    const body = key => ({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }) })
    const got = []
    got.push((await fetch(url + '/ui/api/agent')).status)
    got.push((await fetch(url + '/ui/session', body('x'.repeat(32)))).status)
    const entered = await fetch(url + '/ui/session', body(${JSON.stringify(key)}))
    const cookie = entered.headers.getSetCookie()[0].split(';')[0]
    got.push(entered.status, (await fetch(url + '/ui/api/agent', { headers: { cookie } })).status)
    console.log(JSON.stringify(got))
    process.exit() // its connections are kept`
  assert.deepEqual(runAs(nobody, script), [401, 401, 200, 200])
})

/** The page was told where it is. */
function isTold(page: Page): Promise<void> {
  return until('the page is told of its host', 20_000, async () => (await page.textContent('.top b')) !== '…')
}

test('in a browser the link opens the page, and takes its key out of sight', {
  skip: skip || withoutChromium,
}, async t => {
  const browser = await LiveBrowser.start()
  t.after(() => browser.close())
  // By a proxy, so that the browser is not root for being one of root's programs.
  const headers = { 'x-forwarded-for': '10.0.0.1' }
  const link = (await svc(['ui', '--config', agent.file])).out.trim()
  const { page, faults } = await browser.open(link, { headers })
  await isTold(page)
  assert.deepEqual(faults, [])
  assert.equal(page.url(), `http://127.0.0.1:${agent.port}/ui`)
  assert.equal(await page.evaluate('document.cookie'), '')
  await page.reload()
  await isTold(page)
  // Who has no link is asked who they are, and a link of another run says so.
  for (const [hash, want] of [
    ['', /Sign-in/],
    ['#key=of-another-run', /the agent was restarted/],
  ] as const) {
    const { page: other } = await browser.open(`http://127.0.0.1:${agent.port}/ui${hash}`, { headers })
    await other.waitForSelector('main form.card')
    assert.match((await other.textContent('main form.card')) ?? '', want)
    assert.match((await other.textContent('main form.card')) ?? '', /sudo svc ui/)
    assert.equal(new URL(other.url()).hash, '')
  }
})

test('commands tell a user without rights what to do', { skip }, async () => {
  const asNobody = (...command: string[]) =>
    svc([...command, '--config', agent.file], { uid: nobody, cwd: '/' })
  for (const [command, want] of [
    [['ui'], /cannot print a link to the page: .*without a token, only root .* use sudo/],
    [['tap', 'traces'], /without a token, only root .* use sudo/],
  ] as const) {
    const { code, talk } = await asNobody(...command)
    assert.equal(code, 4, talk)
    assert.match(talk, want)
    assert.doesNotMatch(talk, /SVC_TOKEN/)
  }
  const { code, out, talk } = await asNobody('status')
  assert.equal(code, 0, talk)
  assert.match(talk, /Only root and the user of svc can see .*: use sudo/)
  assert.match(out, /svc/)
})
