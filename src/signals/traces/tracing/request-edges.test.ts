import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { kernelOperation } from '../../../../test/helpers/kernel-operation.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { WallClock } from '../../../foundation/lib/wall-clock.ts'
import type { RequestEdge } from '../../../foundation/model/request-edge.ts'
import { type Resource, resource } from '../../../foundation/model/resource.ts'
import type { Operation } from '../../../foundation/model/stream.ts'
import { bounds } from '../protocols/durations.ts'
import { http1 } from '../protocols/http1.ts'
import { RedTable } from './red.ts'
import { Tracer } from './tracer.ts'
import type { TracerOptions, TracerRules } from './tracer-options.ts'

const host = '127.0.0.1'
const elsewhere = '10.0.0.2'

const rules: TracerRules = {
  ratio: 1,
  alwaysErrors: true,
  alwaysSlow: true,
  slowNs: 1e9,
  readContext: true,
  excludedPath: path => path === '/healthz',
}

/** Client, server, whether it failed, durations in milliseconds (-1: not seen). */
type Told = readonly [unknown, unknown, boolean, number, number]

function open(options: Partial<TracerOptions> = {}) {
  const told: Told[] = []
  const requests: RequestEdge[] = []
  const clock = { ms: 0 }
  const services = new Map<number, Resource>()
  const tracer = new Tracer({
    protocols: [http1.create({ route: (_operation, path) => path })],
    scope: { name: 'svc/test', version: '1' },
    red: new RedTable({ startUs: 0 }),
    countedBounds: bounds,
    resourceOf: ({ pid }) => {
      const of = services.get(pid) ?? resource({ 'service.name': `service ${pid}` })
      services.set(pid, of)
      return of
    },
    spans: { add: () => {} },
    refuse: () => {},
    clock: new WallClock(),
    drop: () => {},
    rules,
    edge: request => {
      const { client, server, failed, clientNs, serverNs } = request
      told.push([nameOf(client), nameOf(server), failed, msOf(clientNs), msOf(serverNs)])
      requests.push({ ...request, probe: request.probe })
    },
    isLocal: address => address === host,
    now: () => clock.ms,
    ...options,
  })
  return { tracer, told, requests, clock }
}

const nameOf = (side: Resource | string) =>
  typeof side === 'string' ? side : side.attributes.get('service.name')
const msOf = (ns: number) => (ns < 0 ? -1 : ns / 1e6)

interface Given {
  readonly server: boolean
  readonly sequence?: number
  readonly peer?: string
  readonly pid?: number
  readonly path?: string
  readonly status?: number
  readonly head?: string
}

/** A request of `service 1`, which takes 4 ms, to port 80 of `service 2`, which takes 3 ms. */
function side({ server, sequence = 7, peer = host, path = '/users', head = '', ...more }: Given): Operation {
  return kernelOperation({
    head: `GET ${path} HTTP/1.1\r\nHost: shop\r\n${head}\r\n`,
    protocol: 'http1',
    server,
    pid: more.pid ?? (server ? 2 : 1),
    status: more.status ?? 200,
    sequence,
    localAddress: host,
    peerAddress: peer,
    localPort: server ? 80 : 40_000,
    peerPort: server ? 40_000 : 80,
    startNs: 1_000_000_000,
    durationNs: server ? 3e6 : 4e6,
  })
}
const client = (given: Partial<Given> = {}) => side({ server: false, ...given })
const server = (given: Partial<Given> = {}) => side({ server: true, ...given })
const both: Told = ['service 1', 'service 2', false, 4, 3]

test('a request within the host is told once, whichever side comes first, and with both of its addresses', () => {
  for (const order of [
    [client(), server()],
    [server(), client()],
  ]) {
    const { tracer, told, requests, clock } = open()
    for (const operation of order) tracer.end(operation)
    clock.ms = 10_000
    tracer.tick()
    assert.deepEqual(told, [both])
    const { protocol, clientAddress, serverAddress, serverPort, probe } = requests[0]!
    assert.deepEqual(
      [protocol, clientAddress, serverAddress, serverPort, probe],
      ['http', host, host, 80, false],
    )
  }
})

test('it has failed where one of its sides says so', () => {
  const { tracer, told } = open()
  tracer.end(server({ status: 404 }))
  tracer.end(client({ status: 404 }))
  tracer.end(client({ sequence: 8, status: 404 }))
  tracer.end(server({ sequence: 8, status: 404 }))
  assert.deepEqual(
    told.map(([, , failed]) => failed),
    [true, true],
  )
})

test('processes that export spans of their own are told of, and unselected ones by their addresses', () => {
  const hidden: TracerOptions['hidden'] = ({ pid }) =>
    pid === 3 ? 'instrumented' : pid === 4 ? 'not_selected' : ''
  const check = (asks: number, answers: number, want: readonly Told[]) => {
    for (const isServerFirst of [true, false]) {
      const { tracer, told, clock } = open({ hidden })
      const sides = [client({ pid: asks }), server({ pid: answers })]
      for (const operation of isServerFirst ? sides.reverse() : sides) tracer.end(operation)
      clock.ms = 2000
      tracer.tick()
      assert.deepEqual(told, want)
    }
  }
  check(3, 2, [['service 3', 'service 2', false, 4, 3]])
  check(1, 3, [['service 1', 'service 3', false, 4, 3]])
  check(3, 3, [['service 3', 'service 3', false, 4, 3]])
  check(4, 2, [[host, 'service 2', false, -1, 3]])
  check(1, 4, [['service 1', host, false, 4, -1]])
  check(4, 4, [])
})

test('a side whose other one is not seen is told after two seconds, with all that was known of it', () => {
  const { tracer, told, requests, clock } = open()
  tracer.end(server({ head: 'User-Agent: kube-probe/1.31\r\n', status: 500 }))
  tracer.end(client({ sequence: 8, path: '/metrics' }))
  clock.ms = 1999
  tracer.tick()
  assert.deepEqual(told, [])
  clock.ms = 2000
  tracer.tick()
  assert.deepEqual(told, [
    [host, 'service 2', true, -1, 3],
    ['service 1', host, false, 4, -1],
  ])
  assert.deepEqual(
    requests.map(({ protocol, serverPort, clientAddress, serverAddress, probe }) => [
      protocol,
      serverPort,
      clientAddress,
      serverAddress,
      probe,
    ]),
    [
      ['http', 80, '', host, true],
      ['http', 80, host, '', true],
    ],
  )
  // Too late, but not another request.
  tracer.end(client())
  tracer.end(server({ sequence: 8 }))
  clock.ms = 10_000
  tracer.tick()
  assert.equal(told.length, 2)
})

test('a side waits for one that is under way, for half a minute at most', () => {
  for (const afterMs of [25_000, 60_000]) {
    const { tracer, told, clock } = open()
    tracer.begin(server())
    tracer.end(client())
    for (; clock.ms < afterMs; clock.ms += 250) tracer.tick()
    tracer.end(server())
    clock.ms += 10_000
    tracer.tick()
    assert.deepEqual(told, afterMs < 30_000 ? [both] : [['service 1', host, false, 4, -1]])
  }
})

test('a side that came to nothing is not waited for', () => {
  const { tracer, told, clock } = open()
  const lost = client()
  tracer.begin(lost)
  tracer.end(server())
  tracer.abandon(lost)
  clock.ms = 2000
  tracer.tick()
  assert.deepEqual(told, [[host, 'service 2', false, -1, 3]])
})

test('between containers, whose addresses are not the host’s, sides that were seen to begin are put together', () => {
  const { tracer, told, clock } = open()
  tracer.begin(client({ peer: '172.17.0.3' }))
  tracer.begin(server({ peer: '172.17.0.2' }))
  tracer.end(server({ peer: '172.17.0.2' }))
  tracer.end(client({ peer: '172.17.0.3' }))
  // From the host: only the server's side knows the other's address.
  tracer.begin(client({ sequence: 8, peer: '172.17.0.3' }))
  tracer.end(server({ sequence: 8 }))
  tracer.end(client({ sequence: 8, peer: '172.17.0.3' }))
  clock.ms = 10_000
  tracer.tick()
  assert.deepEqual(told, [both, both])
})

test('other hosts, and what has no name of its own, are told at once', () => {
  const { tracer, told } = open()
  tracer.end(client({ peer: elsewhere }))
  tracer.end(server({ peer: elsewhere }))
  tracer.end(client({ sequence: 0 }))
  tracer.end(server({ sequence: 0 }))
  assert.deepEqual(told, [
    ['service 1', elsewhere, false, 4, -1],
    [elsewhere, 'service 2', false, -1, 3],
    ['service 1', host, false, 4, -1],
  ])
})

test('it is told what was spoken: gRPC is not HTTP, and its health checks are probes', () => {
  const { tracer, requests } = open()
  const finish = (protocol: string, signalType: string, method = '') => {
    const operation = client({ peer: elsewhere })
    const { connection, call } = operation
    connection.protocol = protocol
    connection.fromBytes = true
    call.signalType = signalType
    if (method !== '') call.attributes.add('rpc.method', method)
    tracer.end(operation)
  }
  finish('http2', 'grpc', 'shop.Cart/Add')
  finish('http2', 'grpc', 'grpc.health.v1.Health/Check')
  finish('http2', 'http')
  finish('http1', 'http')
  finish('postgres', 'sql')
  assert.deepEqual(
    requests.map(({ protocol, probe }) => `${protocol} ${probe}`),
    ['grpc false', 'grpc true', 'http false', 'http false', 'postgres false'],
  )
})

test('an excluded path is not told', () => {
  const { tracer, told } = open()
  for (const operation of [server({ path: '/healthz' }), client({ path: '/healthz' })]) tracer.end(operation)
  tracer.flush()
  assert.deepEqual(told, [])
})

test('a flush tells all that waits, also of what is under way', () => {
  const { tracer, told } = open()
  tracer.begin(server())
  tracer.end(client())
  tracer.flush()
  assert.deepEqual(told, [['service 1', host, false, 4, -1]])
})

test('more than there is room for are told early, and none is lost or told twice', () => {
  const { tracer, told, clock } = open()
  const one = server()
  const count = 20_000
  for (let i = 1; i <= count; i++) {
    one.sequence = Math.imul(i, 2_654_435_761) >>> 0
    one.connection.peerPort = 1 + (i % 60_000)
    tracer.end(one)
  }
  assert.ok(told.length >= count - 4096)
  clock.ms = 2000
  tracer.tick()
  assert.equal(told.length, count)
  // Those that are remembered.
  const late = client()
  for (let i = count - 4000; i <= count; i++) {
    late.sequence = Math.imul(i, 2_654_435_761) >>> 0
    late.connection.localPort = 1 + (i % 60_000)
    tracer.end(late)
  }
  tracer.flush()
  assert.equal(told.length, count)
})

/** What comes of one side of a request. */
interface Fate {
  /** Whether it is told that it begins. */
  readonly begins: boolean
  readonly end: 'ends' | 'ends' | 'lost' | 'dropped'
  readonly hidden: '' | 'instrumented' | 'not_selected'
}

type Step = { readonly request: number; readonly server: boolean } | number

test('each request of which a side was seen is told exactly once, whatever comes when', () => {
  const fate: fc.Arbitrary<Fate> = fc.record({
    begins: fc.boolean(),
    end: fc.constantFrom('ends', 'ends', 'ends', 'lost', 'dropped'),
    hidden: fc.constantFrom('', '', 'instrumented', 'not_selected'),
  })
  const fates = fc.array(
    fc.record({ client: fate, server: fate, path: fc.constantFrom('/a', '/b', '/healthz') }),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ request: fc.nat(11), server: fc.boolean() }) },
    fc.nat(3000),
    { weight: 1, arbitrary: fc.nat(60_000) },
  )
  const check = (
    requests: readonly { client: Fate; server: Fate; path: string }[],
    steps: readonly Step[],
  ) => {
    // Of a request, its client is process 2n and its server 2n + 1.
    const fateOf = (pid: number): Fate => requests[pid >> 1]![pid % 2 === 0 ? 'client' : 'server']
    const { tracer, told, clock } = open({ hidden: ({ pid }) => fateOf(pid).hidden })
    const sideOf = (request: number, isServer: boolean) =>
      side({
        server: isServer,
        sequence: 1000 + (request % 4),
        path: requests[request]!.path,
        pid: 2 * request + Number(isServer),
      })
    /** How far each side is: begun, over. */
    const begun = new Map<number, Operation>()
    const reached = new Map<number, number>()
    const go = (request: number, isServer: boolean): void => {
      const pid = 2 * request + Number(isServer)
      const at = reached.get(pid) ?? 0
      reached.set(pid, at + 1)
      const { begins, end } = fateOf(pid)
      const operation = sideOf(request, isServer)
      operation.connection[isServer ? 'peerPort' : 'localPort'] = 40_000 + request
      if (at === 0 && begins) {
        begun.set(pid, operation)
        tracer.begin(operation)
      } else if (at === 1 && end === 'ends') tracer.end(operation)
      else if (at === 1 && end === 'dropped') {
        const lost = begun.get(pid)
        if (lost !== undefined) tracer.abandon(lost)
      }
    }
    for (const each of steps) {
      if (typeof each === 'number') {
        clock.ms += each
        tracer.tick()
      } else if (each.request < requests.length) go(each.request, each.server)
    }
    for (let request = 0; request < requests.length; request++)
      for (const isServer of [true, false])
        while ((reached.get(2 * request + Number(isServer)) ?? 0) < 2) go(request, isServer)
    clock.ms += 2000
    tracer.tick()
    tracer.flush()
    const seen = (pid: number) => {
      const { end, hidden } = fateOf(pid)
      return end === 'ends' && hidden !== 'not_selected'
    }
    const want = requests.flatMap(({ path }, i) =>
      path !== '/healthz' && (seen(2 * i) || seen(2 * i + 1)) ? [i] : [],
    )
    const requestOf = ([from, to]: Told) =>
      Number(/^service (\d+)$/.exec(String(from === host ? to : from))![1]) >> 1
    assert.deepEqual(
      told.map(requestOf).sort((a, b) => a - b),
      want,
    )
    for (const [from, to, , clientMs, serverMs] of told) {
      assert.equal(clientMs >= 0, from !== host)
      assert.equal(serverMs >= 0, to !== host)
    }
  }
  fc.assert(fc.property(fates, fc.array(step, { maxLength: 60 }), check), { numRuns: soak ? 20_000 : 500 })
})
