import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { hostTree, readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { NetworkNamespace, withoutNamespaces } from '../../../../test/helpers/network-namespace.ts'
import { qdisc } from './qdisc.ts'

const fixtures = join(hostTree, 'qdisc')

test('root disciplines of a fixture are shown', async () => {
  const { lines } = await readWith(qdisc, { fixtures, device_include: 'eth' })
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_qdisc_backlog{device="eth0",kind="mq"} 4542',
      'node_qdisc_bytes_total{device="eth0",kind="mq"} 9.007199254740991e+15',
      'node_qdisc_current_queue_length{device="eth0",kind="mq"} 3',
      'node_qdisc_drops_total{device="eth0",kind="mq"} 5',
      'node_qdisc_overlimits_total{device="eth0",kind="mq"} 1',
      'node_qdisc_packets_total{device="eth0",kind="mq"} 4.410021e+06',
      'node_qdisc_requeues_total{device="eth0",kind="mq"} 2',
    ],
  )
  const { lines: others } = await readWith(qdisc, { fixtures, device_exclude: 'eth' })
  assert.ok(others.includes('node_qdisc_bytes_total{device="wg0",kind="noqueue"} 0'))
  await assert.rejects(readWith(qdisc, { fixtures, device_include: 'a', device_exclude: 'b' }), /both set/)
})

test('a fixture that is none is an error', async t => {
  const read = async (content: string) => {
    const root = treeOf(t, { 'proc/results.json': content })
    return (await readWith(qdisc, { fixtures: join(root, 'proc') })).reason
  }
  assert.match(await read(''), /results\.json: not JSON/)
  assert.match(await read('[1]'), /results\.json: not JSON/)
  assert.match(await read('[{"Bytes": "many"}]'), /bytes is not a number/)
  assert.match(await read('[{"Kind": {}}]'), /kind is not a string/)
  assert.match((await readWith(qdisc, { fixtures: '/no/such/place' })).reason, /: not found/)
})

test('the kernel tells root disciplines with what they did', { skip: withoutNamespaces }, t => {
  const namespace = new NetworkNamespace(t, [
    'link add va type veth peer name vb',
    'addr add 192.0.2.1/24 dev va',
    'neigh add 192.0.2.2 lladdr 02:00:5e:00:53:02 dev va nud permanent',
    'link set va addrgenmode none',
    'link set vb addrgenmode none',
    'link set va up',
    'link set vb up',
  ])
  const { lines, outcome } = namespace.read('qdisc')
  assert.equal(outcome, 'success')
  assert.ok(lines.includes('node_qdisc_packets_total{device="va",kind="noqueue"} 0'), lines.join('\n'))
  assert.equal(new Set(lines.filter(line => !line.startsWith('#')).map(line => line.split('{')[0])).size, 7)
})
