import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NetworkNamespace, withoutNamespaces } from '../../../../test/helpers/network-namespace.ts'

test('unicast routes of all tables are shown, one for each next hop', { skip: withoutNamespaces }, t => {
  const namespace = new NetworkNamespace(t, [
    'link add va type veth peer name vb',
    'link set va addrgenmode none',
    'link set vb addrgenmode none',
    'link set va up',
    'link set vb up',
    'addr add 198.51.100.1/24 dev va',
    'addr add 2001:db8::1/64 dev vb nodad',
    'route add default via 198.51.100.254 metric 7 proto static',
    'route add 203.0.113.0/24 nexthop via 198.51.100.2 weight 3 nexthop via 198.51.100.3 weight 1',
    'route add 203.0.114.0/25 dev va src 198.51.100.1 table 77 proto bird',
    'route add blackhole 192.88.99.0/24',
    '-6 route add 2001:db8:1::/48 via 2001:db8::9 dev vb proto 200',
  ])
  const { lines, outcome } = namespace.read('network_route')
  assert.equal(outcome, 'success')
  const route = (dest: string, device: string, rest: string) =>
    `node_network_route_info{dest="${dest}",device="${device}",${rest}} 1`
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      route('198.51.100.0/24', 'va', 'gw="",priority="0",proto="kernel",src="198.51.100.1",weight=""'),
      route('2001:db8:1::/48', 'vb', 'gw="2001:db8::9",priority="1024",proto="unknown",src="",weight=""'),
      route('2001:db8::/64', 'vb', 'gw="",priority="256",proto="kernel",src="",weight=""'),
      route('203.0.113.0/24', 'va', 'gw="198.51.100.2",priority="0",proto="boot",src="",weight="3"'),
      route('203.0.113.0/24', 'va', 'gw="198.51.100.3",priority="0",proto="boot",src="",weight="1"'),
      route('203.0.114.0/25', 'va', 'gw="",priority="0",proto="bird",src="198.51.100.1",weight=""'),
      route('default', 'va', 'gw="198.51.100.254",priority="7",proto="static",src="",weight=""'),
      'node_network_routes{device="va"} 5',
      'node_network_routes{device="vb"} 2',
    ],
  )
})

test('a host without routes has no series', { skip: withoutNamespaces }, t => {
  const { lines, outcome } = new NetworkNamespace(t, []).read('network_route')
  assert.deepEqual([lines, outcome], [[], 'success'])
})
