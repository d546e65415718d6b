import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, before, type TestContext, test } from 'node:test'
import { withoutTmux } from '../../../test/helpers/host-needs.ts'
import { until } from '../../../test/helpers/program.ts'
import { svcProgram } from '../../../test/helpers/program-under-test.ts'
import { Tmux } from '../../../test/helpers/tmux.ts'
import {
  liveOf,
  overviewStart,
  overviewTick,
  pipelineLine,
  serviceLineOf,
  serviceOf,
  startUiAgent,
  type UiAgent,
} from '../../../test/helpers/ui-agent.ts'

const cart = serviceOf('cart', { dependencies: ['redis', 'postgresql (orders)'] })
const checkout = serviceOf('checkout', {
  protocols: ['grpc'],
  requests_per_s: 12.7,
  errors_percent: 2.4,
  p50_ms: 19,
  p95_ms: 240,
  p99_ms: 1200,
  dependencies: ['cart', 'payment'],
})
let services = [checkout, cart]
const asked: string[] = []
let open = 0
let agent: UiAgent

function overview() {
  let isFirst = true
  open++
  return {
    ...liveOf(() => {
      const lines = [...(isFirst ? [overviewStart] : []), overviewTick(services)]
      isFirst = false
      return lines
    }),
    close: () => {
      open--
    },
  }
}

before(async () => {
  agent = await startUiAgent({
    overview: seconds => {
      asked.push(`overview ${seconds}`)
      return overview()
    },
    service: name => {
      asked.push(`service ${name}`)
      return liveOf(() => [serviceLineOf(services.find(each => each.name === name)!)])
    },
    pipeline: () => {
      asked.push('pipeline')
      return liveOf(() => [pipelineLine])
    },
  })
})
after(() => agent?.close())

function terminal(t: TestContext, options: ConstructorParameters<typeof Tmux>[1] = {}, args = 'top') {
  const tmux = new Tmux(
    `${process.execPath} ${svcProgram} ${args} --config ${agent.config}; echo "ended with $?"`,
    options,
  )
  t.after(() => tmux.end())
  return tmux
}

async function svc(...args: string[]): Promise<{ code: number | null; out: string; talk: string }> {
  const child = spawn(process.execPath, [svcProgram, ...args, '--config', agent.config])
  let out = ''
  let talk = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    talk += chunk
  })
  const code = await new Promise<number | null>(resolve => child.on('close', resolve))
  return { code, out, talk }
}

test('the first frame has the host, the agent and the services in 80 columns', {
  skip: withoutTmux,
}, async t => {
  const tmux = terminal(t)
  const lines = (await tmux.shows(/checkout/)).split('\n')
  assert.deepEqual(lines.slice(0, 4), [
    ' shop-node-3  cpu 37%  mem 5.1/16G  net 12↓ 4↑ MB/s    svc 0.6% cpu 92M  drops 0',
    ' SERVICE            PROTO    req/s   err%    p50    p95    p99  CALLS',
    '>checkout           grpc      12.7   2.4▲   19ms  240ms   1.2s  cart, payment',
    ' cart               http      41.2     0     8ms   31ms   88ms  redis, postgres…'.replace('…', '~'),
  ])
  assert.match(lines[23]!, /^ \/ filter {2}s sort .* q quit$/)
  assert.ok(tmux.isAlternate && !tmux.isCursorShown)
  tmux.press('q')
  await tmux.shows(/^ended with 0$/m)
  assert.ok(!tmux.isAlternate && tmux.isCursorShown, 'the terminal is as it was')
  assert.equal(asked[0], 'overview 60')
  await until('nobody looks any longer', 20_000, () => open === 0)
})

test('arrows and enter open a service, p the pipeline, ? the keys, and esc leads back', {
  skip: withoutTmux,
}, async t => {
  const tmux = terminal(t)
  await tmux.shows(/>checkout/)
  tmux.press('Down')
  await tmux.shows(/>cart/)
  tmux.press('Enter')
  const service = await tmux.shows(/OPERATION/)
  assert.match(service, / GET \/cart\/\* +240 +3! +1\.2s/)
  assert.match(service, / called by frontend 41\.0\/s\n calls {5}redis 80\.0\/s/)
  assert.match(service, / process\.pid 4121/)
  assert.ok(asked.includes('service cart'))
  tmux.press('p')
  const pipeline = await tmux.shows(/DROPPED SINCE/)
  assert.match(pipeline, / traces +12\.5 +11\.0 +0\.5! +3 {2}█████░░░░░ 5M disk {2}full in 1m30s/)
  assert.match(pipeline, / traces +7! queue_full/)
  assert.match(pipeline, / exporter +failed +otlp collector:4317: connection refused; start the receiver/)
  tmux.press('?')
  await tmux.shows(/COLUMNS/)
  tmux.press('x')
  await tmux.shows(/DROPPED SINCE/)
  tmux.press('Escape')
  await tmux.shows(/>cart/)
})

test('services are filtered, ordered and held to those with errors', { skip: withoutTmux }, async t => {
  const tmux = terminal(t)
  const order = () =>
    tmux
      .lines()
      .slice(2, 6)
      .map(line => line.slice(1).split(' ')[0])
      .filter(name => name === 'cart' || name === 'checkout')
  await tmux.shows(/>checkout/)
  tmux.press('s')
  await tmux.shows(/by service/)
  assert.deepEqual(order(), ['cart', 'checkout'])
  tmux.press('e')
  await tmux.shows(/1 of 2, errors only, by service/)
  assert.deepEqual(order(), ['checkout'])
  tmux.press('e', '/', 'r', 'e', 'd', 'q')
  await tmux.shows(/filter: redq/)
  await tmux.shows(/None of 2 services matches the filter "redq"/)
  tmux.press('BSpace', 'Enter')
  await tmux.shows(/1 of 2, "red"/)
  assert.deepEqual(order(), ['cart'])
  tmux.press('Escape')
  await tmux.shows(screen => !screen.includes('"red"'))
  assert.deepEqual(order(), ['cart', 'checkout'])
})

test('the screen follows the size of the terminal, and the bar stays in sight', {
  skip: withoutTmux,
}, async t => {
  const before = services
  services = Array.from({ length: 40 }, (_, i) => serviceOf(`service-${String(i).padStart(2, '0')}`))
  t.after(() => {
    services = before
  })
  const tmux = terminal(t)
  await tmux.shows(/service-19/)
  assert.doesNotMatch(tmux.screen(), /service-21/)
  tmux.press('End')
  await tmux.shows(/>service-39/)
  assert.doesNotMatch(tmux.screen(), /service-18 /)
  tmux.resize(40, 10)
  await tmux.shows(screen => screen.split('\n').length === 11 && />service-39/.test(screen))
  tmux.resize(120, 50)
  await tmux.shows(/ service-00 .*>service-39/s)
  assert.match(tmux.lines()[0]!, /^ shop-node-3 {2}cpu 37% .* drops 0$/)
})

test('an agent without services says what to do', { skip: withoutTmux }, async t => {
  const before = services
  services = []
  t.after(() => {
    services = before
  })
  await terminal(t).shows(/No requests yet\.\n.*Send a request.*\n +svc explain PORT/)
})

test('ctrl-c, SIGTERM and an agent that ends all give the terminal back', { skip: withoutTmux }, async t => {
  const interrupted = terminal(t)
  await interrupted.shows(/checkout/)
  interrupted.press('C-c')
  await interrupted.shows(/ended with 0/)

  const killed = terminal(t)
  await killed.shows(/checkout/)
  process.kill(killed.program!, 'SIGTERM')
  await killed.shows(/ended with 0/)
  assert.ok(!killed.isAlternate && killed.isCursorShown)

  const own = await startUiAgent({ overview })
  const left = new Tmux(`${process.execPath} ${svcProgram} top --config ${own.config}; echo "ended with $?"`)
  t.after(() => left.end())
  await left.shows(/checkout/)
  await own.close()
  await left.shows(/any longer: the agent at unix:.*has stopped\nended with 1/s)
  assert.ok(!left.isAlternate)
})

test('ctrl-z stops it with the terminal given back, and fg goes on', { skip: withoutTmux }, async t => {
  const tmux = new Tmux(`bash --norc -i`, { env: { PS1: '$ ' } })
  t.after(() => tmux.end())
  tmux.press(`${process.execPath} ${svcProgram} top --config ${agent.config}`, 'Enter')
  await tmux.shows(/>checkout/)
  tmux.press('C-z')
  await tmux.shows(/Stopped/)
  assert.ok(!tmux.isAlternate && tmux.isCursorShown)
  tmux.press('fg', 'Enter')
  await tmux.shows(/>checkout/)
  tmux.press('q')
  await tmux.shows(screen => !screen.includes('SERVICE'))
})

test('colours follow NO_COLOR, and without UTF-8 all is ASCII', { skip: withoutTmux }, async t => {
  const coloured = terminal(t)
  await coloured.shows(/>checkout/)
  coloured.press('Down')
  await coloured.shows(/>cart/)
  assert.match(coloured.screen(true), /\x1b\[31m/)
  const plain = terminal(t, { env: { NO_COLOR: '1', LC_ALL: 'C' } })
  const screen = await plain.shows(/checkout/)
  assert.match(screen, /net 12v 4\^ MB\/s/)
  assert.doesNotMatch(screen, /[^\n\x20-\x7e]/)
  assert.doesNotMatch(plain.screen(true), /\x1b\[[\d;]*3\dm/)
})

test('what is no terminal gets one frame of plain text', async () => {
  const { code, out, talk } = await svc('top')
  assert.deepEqual([code, talk], [0, ''])
  assert.match(
    out,
    /^ shop-node-3 .*\n SERVICE .*\n checkout +grpc +12\.7 +2\.4! .*\n cart +http .*redis, postgresql \(orders\)\n$/,
  )
  assert.doesNotMatch(out, /[^\n\x20-\x7e]/)
})

test('--json gives the lines as they came, once or on and on', async () => {
  const { code, out } = await svc('top', '--json', '--once')
  assert.equal(code, 0)
  assert.deepEqual(
    out
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line)),
    [overviewStart, overviewTick(services)],
  )
  const child = spawn(process.execPath, [svcProgram, 'top', '--json', '--config', agent.config])
  let lines = 0
  for await (const chunk of child.stdout) {
    lines += String(chunk).split('\n').length - 1
    if (lines >= 5) break // and with it the reader goes
  }
  const ended = await new Promise(resolve => child.once('close', resolve))
  assert.equal(ended, 0)
})

test('foreign text controls no terminal', { skip: withoutTmux }, async t => {
  const before = services
  services = [serviceOf('evil\x1b]0;x\x07\x1b[2J\r\n\u202e\u009b31m名前', { dependencies: ['\x1b[31mred'] })]
  t.after(() => {
    services = before
  })
  const tmux = terminal(t)
  const screen = await tmux.shows(/evil/)
  assert.match(screen, /^ shop-node-3/)
  assert.match(screen, /evil\ufffd\]0;x\ufffd\ufffd\[2J/)
  const { out } = await svc('top')
  assert.doesNotMatch(out, /[^\n\x20-\x7e]/)
  await tmux.end()
})

test('without an agent it says which ways were tried, with exit code 1', async () => {
  const child = spawn(process.execPath, [svcProgram, 'top'], {
    env: {
      ...process.env,
      SVC_SELF_TELEMETRY_ADMIN_SOCKET: '/nowhere/svc.sock',
      SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:1',
    },
  })
  let talk = ''
  child.stderr.on('data', chunk => {
    talk += chunk
  })
  const code = await new Promise(resolve => child.once('close', resolve))
  assert.equal(code, 1)
  assert.match(
    talk,
    /^svc: cannot show the services: no agent answers \(unix:\/nowhere\/svc\.sock: no such socket.*; http:\/\/127\.0\.0\.1:1: nothing is listening there\); start it/,
  )
})
