import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Owner } from '../../../foundation/lib/fair-share.ts'
import { NetworkPair } from '../../../foundation/model/network-pair.ts'
import { Flows, type FlowsOptions } from './flows.ts'

const addresses: Record<string, string> = { '10.0.0.1': 'eth0', '127.0.0.1': 'lo', '192.168.1.1': 'eth1' }

function table(options: Partial<FlowsOptions> = {}): Flows {
  return new Flows({
    startUs: 1,
    interfaceOf: address => addresses[address] ?? '',
    interfaces: [],
    ...options,
  })
}

function pairOf(values: Partial<NetworkPair>): NetworkPair {
  return Object.assign(new NetworkPair(), { pid: 7, port: 80 }, values)
}

const mallory: Owner = { group: '/user.slice/user-1001.slice', user: '1001' }
const alice: Owner = { group: '/system.slice/shop.service', user: '1002' }

function add(flows: Flows, pair: NetworkPair, service: string, owner = alice): void {
  flows.add(pair, service, owner)
}

/** "source > destination:port direction services": bytes. */
function told(flows: Flows, timeUs: number, last = false): Record<string, number> {
  const found: Record<string, number> = {}
  for (const metric of flows.collect(timeUs, last)) {
    assert.ok(metric.kind === 'sum' && metric.name === 'svc.network.flow.io' && metric.unit === 'By')
    for (const { attributes, value } of metric.points) {
      const of = (key: string) => String(attributes.get(key) ?? '')
      const services = `${of('svc.source.service.name')}>${of('svc.destination.service.name')}`
      const id = attributes.get('otel.metric.overflow')
        ? 'overflow'
        : `${of('source.address')}>${of('destination.address')} ${of('server.port')} ${of('network.io.direction')} ${of('network.interface.name')} ${services}`
      assert.ok(!(id in found), `told twice: ${id}`)
      found[id] = value
    }
  }
  return found
}

const toB = { localAddress: '10.0.0.1', peerAddress: '10.0.0.2' }

test('a flow to another host waits for one collection and is told by direction', () => {
  const flows = table()
  add(flows, pairOf({ ...toB, sent: 10, received: 20 }), 'shop')
  assert.deepEqual(told(flows, 2), {})
  add(flows, pairOf({ ...toB, sent: 1 }), 'shop')
  const want = {
    '10.0.0.1>10.0.0.2 80 transmit eth0 shop>': 11,
    '10.0.0.2>10.0.0.1 80 receive eth0 >shop': 20,
  }
  assert.deepEqual(told(flows, 3), want)
  // Now that the other end is known not to be here, nothing waits.
  add(flows, pairOf({ ...toB, sent: 4 }), 'shop')
  assert.deepEqual(told(flows, 4), { ...want, '10.0.0.1>10.0.0.2 80 transmit eth0 shop>': 15 })
})

test('bytes between two services of this host are counted once, with both names', () => {
  const here = { localAddress: '127.0.0.1', peerAddress: '127.0.0.1' }
  const check = (order: readonly boolean[]) => {
    const flows = table()
    for (const server of order)
      add(
        flows,
        pairOf({ ...here, server, sent: server ? 7 : 5, received: server ? 5 : 7 }),
        server ? 'db' : 'shop',
      )
    assert.deepEqual(told(flows, 2), {
      '127.0.0.1>127.0.0.1 80 transmit lo shop>db': 5,
      '127.0.0.1>127.0.0.1 80 transmit lo db>shop': 7,
    })
  }
  check([true, false])
  check([false, true])
})

test('an end that is seen one collection later still belongs to its flow', () => {
  const flows = table()
  add(
    flows,
    pairOf({ ...toB, server: true, localAddress: '10.0.0.2', peerAddress: '10.0.0.1', sent: 3 }),
    'db',
  )
  assert.deepEqual(told(flows, 2), {})
  add(flows, pairOf({ ...toB, received: 3 }), 'shop')
  assert.deepEqual(told(flows, 3), { '10.0.0.2>10.0.0.1 80 transmit eth0 db>shop': 3 })
})

test('loopback addresses of two namespaces are two hosts', () => {
  const flows = table()
  const here = { localAddress: '127.0.0.1', peerAddress: '127.0.0.1' }
  add(flows, pairOf({ ...here, netns: 1, sent: 5 }), 'shop')
  add(flows, pairOf({ ...here, netns: 2, server: true, received: 9 }), 'db')
  assert.deepEqual(told(flows, 2, true), {
    '127.0.0.1>127.0.0.1 80 transmit lo shop>': 5,
    '127.0.0.1>127.0.0.1 80 receive lo >db': 9,
  })
})

test('only the interfaces that were asked for are told', () => {
  const flows = table({ interfaces: ['eth1'] })
  add(flows, pairOf({ ...toB, sent: 5 }), 'shop')
  add(flows, pairOf({ localAddress: '192.168.1.1', peerAddress: '10.9.9.9', sent: 6 }), 'shop')
  add(flows, pairOf({ localAddress: '172.17.0.2', peerAddress: '10.9.9.9', sent: 7 }), 'shop')
  assert.deepEqual(told(flows, 2, true), { '192.168.1.1>10.9.9.9 80 transmit eth1 shop>': 6 })
})

test('flows beyond the bound are counted in one, and so is what the kernel could not tell apart', () => {
  const flows = table({ maxFlows: 2 })
  for (let i = 0; i < 5; i++) add(flows, pairOf({ ...toB, peerAddress: `10.1.0.${i}`, sent: 1 }), 'shop')
  add(flows, pairOf({ overflow: true, sent: 10 }), '')
  assert.equal(told(flows, 2, true).overflow, 13)
})

test('connections of others keep nobody out, and each byte is told once', () => {
  const flows = table()
  const here = { localAddress: '127.0.0.1' }
  const flood = (round: number) => {
    for (let i = 0; i < 5_000; i++)
      add(flows, pairOf({ ...here, peerAddress: `127.${round}.${i >> 8}.${i & 255}`, sent: 1 }), 'x', mallory)
  }
  let sent = 0
  for (let round = 2; round < 6; round++) {
    flood(round)
    for (let i = 0; i < 100; i++) add(flows, pairOf({ ...toB, port: 1_000 + i, sent: 7 }), 'shop')
    sent += 7
    const all = told(flows, round, true)
    for (let i = 0; i < 100; i++)
      assert.equal(all[`10.0.0.1>10.0.0.2 ${1_000 + i} transmit eth0 shop>`], sent, `${round} ${i}`)
    // The flows that gave way were told once more.
    const total = Object.values(all).reduce((a, b) => a + b, 0)
    assert.equal(total, (round - 1) * 5_000 + 100 * sent - (round === 2 ? 0 : 100))
  }
  assert.equal(flows.size, 4_096)
  assert.ok(flows.losses.taken === 100 && flows.losses.refused > 10_000, JSON.stringify(flows.losses))
})

test('where memory is short idle flows are let go, and those that are used go on', () => {
  const flows = table()
  for (let i = 0; i < 100; i++) add(flows, pairOf({ ...toB, port: i, sent: 5 }), 'shop')
  told(flows, 2, true)
  add(flows, pairOf({ ...toB, port: 1, sent: 5 }), 'shop')
  told(flows, 3, true)
  const { bytes } = flows
  assert.ok(flows.shed(bytes) > bytes * 0.9)
  add(flows, pairOf({ ...toB, port: 2, sent: 5 }), 'shop')
  assert.deepEqual(told(flows, 4, true), { '10.0.0.1>10.0.0.2 2 transmit eth0 shop>': 5 })
})

test('flows that are idle are let go and begin anew', () => {
  const flows = table({ idleCollections: 1 })
  add(flows, pairOf({ ...toB, sent: 5 }), 'shop')
  told(flows, 2, true)
  told(flows, 3)
  assert.deepEqual(told(flows, 4), {})
  assert.equal(flows.size, 0)
  add(flows, pairOf({ ...toB, sent: 2 }), 'shop')
  const [metric] = flows.collect(5)
  assert.deepEqual(
    metric?.points.map(point => [point.startUs, point.timeUs]),
    [[4, 5]],
  )
})

test('whatever comes in whichever order, each byte is told once', () => {
  const address = fc.constantFrom(...Object.keys(addresses), '10.0.0.2')
  const step = fc.record({
    client: address,
    host: address,
    bytes: fc.nat(1000),
    sides: fc.constantFrom('c', 's', 'cs', 'sc'),
  })
  fc.assert(
    fc.property(fc.array(fc.oneof(step, fc.constant('collect' as const)), { maxLength: 40 }), steps => {
      const flows = table()
      // Which ends are here never changes for an address and a port: both, or one of them.
      const sides = new Map<string, string>()
      let want = 0
      let timeUs = 1
      for (const step of steps) {
        if (step === 'collect') {
          flows.collect(++timeUs)
          continue
        }
        const id = `${step.client} ${step.host}`
        const here = sides.get(id) ?? step.sides
        sides.set(id, here)
        want += step.bytes
        for (const side of here) {
          const server = side === 's'
          const localAddress = server ? step.host : step.client
          const peerAddress = server ? step.client : step.host
          add(
            flows,
            pairOf({ localAddress, peerAddress, server, [server ? 'received' : 'sent']: step.bytes }),
            server ? 'db' : 'shop',
          )
        }
      }
      const bytes = Object.values(told(flows, ++timeUs, true)).reduce((a, b) => a + b, 0)
      assert.equal(bytes, want)
    }),
  )
})
