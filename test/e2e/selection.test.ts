// owns: host
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, afterEach, before, test } from 'node:test'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { freePort, listening, until } from '../helpers/program.ts'
import { client, server, Telemetry } from '../helpers/telemetry.ts'
import { startPythonShop } from '../helpers/web-servers.ts'

const skip = withoutBpf
const requests = 10

let telemetry: Telemetry
const open: { close(): Promise<unknown> }[] = []

before(async () => {
  telemetry = await Telemetry.start()
})
after(() => telemetry.close())
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
  telemetry.forget()
})

interface View {
  readonly pid: number
  readonly service: string
  readonly executable: string
  readonly listening_ports: readonly number[]
  readonly served_ports: readonly number[]
  readonly has_calls: boolean
  readonly observed: boolean
  readonly reason: string
  readonly notes: readonly string[]
}

/** The discovery rules of an agent that looks at these ports. */
async function startAgent(ports: readonly number[], discovery: unknown): Promise<AgentProcess> {
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports,
    config: { discovery: discovery as Tree },
  })
  open.push({ close: () => agent.stop() })
  return agent
}

async function views(agent: AgentProcess, query: string): Promise<readonly View[]> {
  return (await agent.document<{ processes: View[] }>(`/status/processes?${query}`)).processes
}

/** A service that answers at `port`; asked for …/export it sends spans to the port `collector`. */
async function startApplication(name: string, port: number, collector = 0): Promise<ChildProcess> {
  const script = `
    const http = require('node:http')
    const options = { host: '127.0.0.1', port: ${collector}, path: '/v1/traces', method: 'POST',
      headers: { 'content-type': 'application/json' } }
    http.createServer((request, response) => {
      if (!request.url.endsWith('/export')) return response.end('hello')
      http.request(options, answer => answer.resume().on('end', () => response.end('sent'))).end('{}')
    }).listen(${port}, '127.0.0.1')`
  const child = spawn(process.execPath, ['-e', script], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '', OTEL_SERVICE_NAME: name },
  })
  const ended = once(child, 'close')
  open.push({
    close: () => {
      child.kill('SIGKILL')
      return ended
    },
  })
  await listening(port)
  return child
}

/** Takes whatever it is sent; returns its port. */
async function startCollector(): Promise<number> {
  const collector: Server = createServer((request, response) =>
    request.resume().on('end', () => response.end('{}')),
  )
  collector.listen(0, '127.0.0.1')
  await once(collector, 'listening')
  open.push({ close: () => new Promise(resolve => collector.close(resolve)) })
  return (collector.address() as AddressInfo).port
}

async function ask(port: number, path = '/items/1', times = requests, method = 'GET'): Promise<void> {
  for (let i = 0; i < times; i++)
    await new Promise<void>((resolve, reject) => {
      const call = request({ host: '127.0.0.1', port, path, method, agent: false }, response =>
        response.resume().on('end', resolve),
      )
      call.on('error', reject).end()
    })
}

test('what is excluded by its name or by a port of its own has neither spans nor metrics', {
  skip,
}, async () => {
  const [named, listed, visible] = [await freePort(), await freePort(), await freePort()]
  const hidden = [await startApplication('hidden-till', named), await startApplication('listed', listed)]
  const seen = await startApplication('visible', visible)
  const agent = await startAgent([named, listed, visible], {
    exclude: [{ name: 'hidden-*' }, { open_ports: [String(listed)] }],
  })
  for (const port of [named, listed, visible]) await ask(port)
  await telemetry.arrived(2 * requests, visible)
  await telemetry.settle(agent)
  for (const port of [named, listed]) {
    assert.equal(telemetry.spans(port, server).length, 0)
    assert.equal(telemetry.spans(port, client).length, requests, 'this process is not excluded')
  }
  assert.equal(telemetry.spans(visible, server).length, requests)
  assert.equal(telemetry.servedBy(seen.pid!), requests)
  assert.equal(telemetry.servedBy(...hidden.map(({ pid }) => pid!)), 0)

  const [byName] = await views(agent, `pid=${hidden[0]!.pid}`)
  assert.equal(byName?.service, 'hidden-till')
  assert.equal(byName.observed, false)
  assert.equal(byName.reason, 'discovery.exclude[0] matches')
  const [byPort] = await views(agent, `port=${listed}`)
  assert.ok(byPort !== undefined && byPort.pid === hidden[1]!.pid)
  assert.equal(byPort.observed, false)
  assert.equal(byPort.reason, 'discovery.exclude[1] matches')
  const [observed] = await views(agent, `port=${visible}`)
  assert.equal(observed?.observed, true)
  assert.equal(observed.has_calls, true)
  assert.deepEqual(observed.listening_ports, [visible])
  assert.deepEqual(observed.served_ports, [visible])
})

test('with entries of instrument only what they mean is observed', { skip }, async () => {
  const [wanted, other] = [await freePort(), await freePort()]
  const shop = await startPythonShop(wanted)
  open.push(shop)
  const left = await startApplication('left-out', other)
  const agent = await startAgent([wanted, other], { instrument: [{ exe_path: '*/python3*' }] })
  await ask(other)
  await ask(wanted)
  await telemetry.arrived(requests, wanted, server)
  assert.equal(telemetry.spans(wanted, client).length, 0, 'this process is not meant')
  assert.equal(telemetry.spans(other).length, 0)
  await until('it is counted', 20_000, () => telemetry.servedBy(...shop.pids) === requests)
  assert.equal(telemetry.servedBy(left.pid!), 0)

  const [meant] = await views(agent, `pid=${shop.pids[0]}`)
  assert.equal(meant?.reason, 'discovery.instrument[0] matches')
  const [foreign] = await views(agent, `port=${other}`)
  assert.equal(foreign?.observed, false)
  assert.equal(foreign.reason, 'no entry of discovery.instrument matches')
})

test('an application that exports spans of its own gets none here from then on, but metrics', {
  skip,
}, async () => {
  const exportPort = await startCollector()
  const port = await freePort()
  const application = await startApplication('instrumented', port, exportPort)
  const agent = await startAgent([port, exportPort], {})
  await ask(port)
  await telemetry.arrived(2 * requests, port)
  await ask(port, '/export', 1)
  await ask(port)
  await telemetry.settle(agent)
  const all = 2 * requests + 1
  assert.equal(telemetry.spans(port, client).length, all)
  // Of the request that caused the export nothing was told before the export was over.
  assert.equal(telemetry.spans(port, server).length, requests)
  assert.equal(telemetry.servedBy(application.pid!), all)
  assert.equal(
    telemetry.spans(exportPort, client).length,
    0,
    'exports of telemetry are no requests of the application',
  )
  assert.equal(
    telemetry.spans(exportPort, server).length,
    1,
    'no port of a receiver: anybody may ask for that',
  )
  assert.equal((await agent.metrics()).sum('svc_spans_dropped_total', 'reason="instrumented"'), requests + 1)
  const [view] = await views(agent, `pid=${application.pid}`)
  assert.equal(view?.observed, false)
  assert.match(view.reason, /exports its own spans/)
})

test('a service that passes an export of spans on keeps its own', { skip }, async () => {
  const exportPort = await startCollector()
  const port = await freePort()
  await startApplication('relay', port, exportPort)
  const agent = await startAgent([port, exportPort], {})
  await ask(port, '/any/v1/traces/export', 1, 'POST')
  await ask(port)
  await telemetry.settle(agent)
  assert.equal(telemetry.spans(port, server).length, requests + 1)
  assert.equal((await agent.metrics()).sum('svc_spans_dropped_total', 'reason="instrumented"'), 0)
})

test('asking about a process does not make it one that was seen', { skip }, async () => {
  const [port, excluded] = [await freePort(), await freePort()]
  const quiet = await startApplication('quiet', port)
  const left = await startApplication('left', excluded)
  const agent = await startAgent([port], {})
  for (let times = 0; times < 2; times++) {
    const [view] = await views(agent, `pid=${quiet.pid}`)
    assert.equal(view?.observed, true)
    assert.equal(view.has_calls, false)
    assert.match(view.notes.join(), /no call of a known protocol yet/)
    const [apart] = await views(agent, `port=${excluded}`)
    assert.ok(apart !== undefined && apart.pid === left.pid)
    assert.equal(apart.observed, false)
    assert.match(apart.reason, /its ports are excluded by .*include_ports or exclude_ports/)
  }
  assert.deepEqual(await views(agent, 'pid=4194304'), [])
})

test('what is excluded has no system calls counted either', { skip }, () => excludesCalls(true))

test('what is excluded has no system calls counted where requests are not looked at', { skip }, () =>
  excludesCalls(false),
)

async function excludesCalls(network: boolean): Promise<void> {
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    config: {
      discovery: { exclude: [{ name: 'hidden-*' }] } as unknown as Tree,
      agent: { ebpf: { network: { enabled: network }, syscalls: { enabled: true, include: ['umask'] } } },
    },
  })
  open.push({ close: () => agent.stop() })
  // They go on for as long as anybody may want to know who they are.
  const script = `
import os, select
print(os.getpid(), flush=True)
while not select.select([0], [], [], .05)[0]: os.umask(18)`
  const start = async (name: string) => {
    const child = spawn('python3', ['-c', script], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, OTEL_SERVICE_NAME: name },
    })
    const ended = once(child, 'close')
    open.push({
      close: () => {
        child.stdin.end()
        return ended
      },
    })
    const [pid] = await once(child.stdout, 'data')
    return Number(pid)
  }
  const hidden = await start('hidden-till')
  const visible = await start('visible')
  const counted = (pid: number) =>
    telemetry
      .counted(({ metric, resource }) => metric === 'svc.syscall.duration' && resource['process.pid'] === pid)
      .reduce((sum, { count }) => sum + count, 0)
  // Enough of them to be told more than once.
  await until('the calls of one are told', 60_000, () => counted(visible) >= 40)
  assert.equal(counted(hidden), 0)
}
