import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { withoutNamespaces } from '../../../test/helpers/network-namespace.ts'
import { freePort, runsItsProgram, until } from '../../../test/helpers/program.ts'
import { ProcessTable } from './process-table.ts'
import type { Service } from './service-list.ts'

const withoutSs: string | false = spawnSync('ss', ['-V']).status === 0 ? false : 'needs ss(8) of iproute2'
const nginx = ['/usr/sbin/nginx', '/usr/bin/nginx'].find(path => existsSync(path)) ?? ''

const scratch = mkdtempSync(join(tmpdir(), 'svc-live-'))
const children: ChildProcess[] = []
after(async () => {
  for (const child of children) {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
    child.kill('SIGTERM')
    await ended
  }
  rmSync(scratch, { recursive: true })
})

function start(name: string, command: string, args: readonly string[]): ChildProcess {
  const env = { ...process.env, NODE_OPTIONS: '', OTEL_SERVICE_NAME: name }
  const child = spawn(command, args, { stdio: 'ignore', env })
  children.push(child)
  return child
}

const node = (ports: readonly number[]) => `
  const net = require('node:net')
  for (const port of ${JSON.stringify(ports)}) net.createServer().listen(port, port % 2 ? '127.0.0.1' : '::')
  process.on('SIGTERM', () => process.exit())`

/** Ports by the processes that listen there, as ss(8) tells them in one network namespace. */
function fromSs(namespace: readonly string[] = []): Map<number, number[]> {
  const [command, ...args] = [...namespace, 'ss', '-ltnpH']
  const found = new Map<number, Set<number>>()
  for (const line of execFileSync(command!, args, { encoding: 'utf8' }).split('\n')) {
    const port = Number(/:(\d+)$/.exec(line.split(/\s+/)[3] ?? '')?.[1])
    for (const [, pid] of line.matchAll(/pid=(\d+)/g)) {
      const ports = found.get(Number(pid)) ?? new Set()
      found.set(Number(pid), ports.add(port))
    }
  }
  return new Map([...found].map(([pid, ports]) => [pid, [...ports].sort((a, b) => a - b)]))
}

const table = () => new ProcessTable({ hostName: 'h', bootId: 'b', version: '1' })
const named = (services: readonly Service[], name: string) => services.find(each => each.name === name)

/** What ss told of these processes. */
function summary(listeners: ReadonlyMap<number, readonly number[]>, pids: readonly number[]) {
  const ports = [...new Set(pids.flatMap(pid => listeners.get(pid) ?? []))].sort((a, b) => a - b)
  return { instances: pids.filter(pid => listeners.has(pid)).length, ports }
}

test('services that listen are those that ss tells, with the same processes and ports', {
  skip: withoutSs,
}, async () => {
  const ports = [await freePort(), await freePort(), await freePort(), await freePort(), await freePort()]
  const shop = [start('live-shop', process.execPath, ['-e', node(ports.slice(0, 2))])]
  shop.push(start('live-shop', process.execPath, ['-e', node(ports.slice(2, 3))]))
  const python = start('live-python', 'python3', [
    '-m',
    'http.server',
    String(ports[3]),
    '--bind',
    '127.0.0.1',
  ])
  if (nginx !== '') {
    const configuration = join(scratch, 'nginx.conf')
    writeFileSync(
      configuration,
      `daemon off; worker_processes 3; pid ${scratch}/pid; error_log ${scratch}/error.log;
      events {} http { access_log off; server { listen 127.0.0.1:${ports[4]}; } }`,
    )
    start('live-nginx', nginx, ['-c', configuration])
  }
  const wanted = nginx === '' ? ports.slice(0, 4) : ports
  const holders = (port: number) => [...fromSs().values()].filter(each => each.includes(port)).length
  // A master and three workers hold the port of nginx.
  await until('all listen', 60_000, () => wanted.every((port, i) => holders(port) >= (i === 4 ? 4 : 1)))
  const ss = fromSs()
  const services = await table().liveServices()
  const of = (name: string) => {
    const { instances, ports } = named(services, name) ?? { instances: 0, ports: [] as readonly number[] }
    return { instances, ports }
  }
  assert.deepEqual(
    of('live-shop'),
    summary(
      ss,
      shop.map(({ pid }) => pid!),
    ),
  )
  assert.deepEqual(of('live-shop').instances, 2)
  assert.deepEqual(of('live-python'), summary(ss, [python.pid!]))
  // Its title stands where its environment was, so that its name is its program's.
  if (nginx === '') return
  const { instances, ports: open } = of('nginx')
  assert.ok(instances >= 4 && open.includes(ports[4]!), `${instances} at ${open}`)
})

test('services in another network namespace are found there', {
  skip: withoutNamespaces || withoutSs,
}, async () => {
  const name = `svc-live-${process.pid}`
  execFileSync('ip', ['netns', 'add', name])
  try {
    const inside = ['ip', 'netns', 'exec', name]
    start('live-inside', 'ip', [...inside.slice(1), process.execPath, '-e', node([8_081, 8_082])])
    await until('it listens', 60_000, () => [...fromSs(inside).values()].flat().length >= 2)
    const service = named(await table().liveServices(), 'live-inside')
    assert.deepEqual(service, { name: 'live-inside', namespace: '', instances: 1, ports: [8_081, 8_082] })
  } finally {
    execFileSync('ip', ['netns', 'del', name])
  }
})

test('a listener counts for as long as it lives, found at most once in a second', async () => {
  const clock = { ms: 0 }
  const processes = new ProcessTable({ hostName: 'h', bootId: 'b', version: '1', now: () => clock.ms })
  const server = createServer()
  const listening = once(server.listen(0, '127.0.0.1'), 'listening')
  await listening
  const { port } = server.address() as { port: number }
  const listed = async () => (await processes.liveServices()).some(({ ports }) => ports.includes(port))
  assert.equal(await listed(), true)
  const closed = once(server, 'close')
  server.close()
  await closed
  assert.equal(await listed(), true)
  clock.ms += 1_000
  assert.equal(await listed(), false)
})

test('a process that only calls others is a service without ports', async () => {
  const processes = table()
  const child = start('live-client', 'sleep', ['600'])
  await runsItsProgram(child.pid!)
  const nameOf = () => processes.running(child.pid!)?.attributes.get('service.name')
  assert.equal(nameOf(), 'live-client')
  assert.equal(named(await processes.liveServices(), 'live-client'), undefined)
  processes.hidden(child.pid!, 'sleep')
  await until('it is listed', 60_000, async () => {
    const found = named(await processes.liveServices(), 'live-client')
    if (found !== undefined) assert.deepEqual([found.instances, found.ports], [1, []])
    return found !== undefined
  })
})
