import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { DnsServer } from '../../../../../test/helpers/dns-server.ts'
import { until } from '../../../../../test/helpers/program.ts'
import { isAtFault, ReportedTargets } from '../../../../../test/helpers/reported-targets.ts'
import type { SettingsOf } from '../source.ts'
import { DnsTargets } from './dns.ts'

let server: DnsServer
let told: ReportedTargets
let source: DnsTargets
let directory: string

beforeEach(async () => {
  server = await DnsServer.start()
  told = new ReportedTargets()
  directory = mkdtempSync(join(tmpdir(), 'svc-dns-'))
})
afterEach(async () => {
  source.stop()
  await server.close()
  rmSync(directory, { recursive: true })
})

function start(settings: Partial<SettingsOf<'dns'>>, resolv = ''): void {
  const resolverFile = join(directory, 'resolv.conf')
  writeFileSync(resolverFile, resolv)
  source = new DnsTargets(
    { kind: 'dns', names: ['shop.test.'], type: 'A', port: 9100, refreshMs: 100, ...settings },
    { ...told.options, servers: [server.address], resolverFile },
  )
  source.start()
}

test('records of services say host and port', async () => {
  server.zone['_http._tcp.shop.test'] = [
    { type: 'SRV', port: 8080, name: 'b.shop.test' },
    { type: 'SRV', port: 8080, name: 'a.shop.test' },
  ]
  start({ names: ['_http._tcp.shop.test'], type: 'SRV' })
  await told.has('a.shop.test:8080,b.shop.test:8080', source)
  assert.deepEqual(told.targets[0], {
    __address__: 'a.shop.test:8080',
    __meta_dns_name: '_http._tcp.shop.test',
    __meta_dns_srv_record_target: 'a.shop.test.',
    __meta_dns_srv_record_port: '8080',
  })
  server.zone['_http._tcp.shop.test'] = [{ type: 'SRV', port: 81, name: 'a.shop.test' }]
  await told.has('a.shop.test:81', source)
  assert.equal(source.state.connected, true)
})

const records = [
  ['A', { type: 'A', address: [10, 0, 0, 7] }, '10.0.0.7:9100', {}],
  [
    'AAAA',
    { type: 'AAAA', address: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] },
    '[2001:db8::1]:9100',
    {},
  ],
  [
    'MX',
    { type: 'MX', priority: 10, name: 'mail.test' },
    'mail.test:9100',
    { __meta_dns_mx_record_target: 'mail.test.' },
  ],
  ['NS', { type: 'NS', name: 'ns.test' }, 'ns.test:9100', { __meta_dns_ns_record_target: 'ns.test.' }],
] as const
for (const [type, record, address, more] of records)
  test(`records of type ${type} get the port of the configuration`, async () => {
    server.zone['shop.test'] = [record]
    start({ type })
    await told.has(address, source)
    assert.deepEqual(told.targets, [{ __address__: address, __meta_dns_name: 'shop.test.', ...more }])
  })

test('a name without records has no targets, and one that cannot be asked for keeps them', async () => {
  server.zone['shop.test'] = [{ type: 'A', address: [10, 0, 0, 1] }]
  server.zone['cart.test'] = [{ type: 'A', address: [10, 0, 0, 2] }]
  start({ names: ['shop.test.', 'cart.test.'] })
  await told.has('10.0.0.1:9100,10.0.0.2:9100', source)
  server.zone['shop.test'] = 'servfail'
  server.zone['cart.test'] = []
  await told.has('10.0.0.1:9100', source)
  await isAtFault(
    source,
    /cannot look up the A records of shop\.test\.: 127.*answered with an error \(ESERVFAIL\)/,
  )
  assert.match(source.state.hint, /resolv\.conf/)
  delete server.zone['shop.test']
  await told.has('', source)
  await until('it is well', 20_000, () => source.state.connected)
})

test('short names are looked for as resolv.conf says', async () => {
  server.zone['shop.svc.cluster.local'] = [{ type: 'A', address: [10, 0, 0, 1] }]
  server.zone['cart.default.svc.cluster.local'] = [{ type: 'A', address: [10, 0, 0, 2] }]
  const resolv =
    'nameserver 10.0.0.10\nsearch default.svc.cluster.local svc.cluster.local\noptions ndots:5 edns0\n'
  start({ names: ['shop', 'cart.default'], refreshMs: 3_600_000 }, resolv)
  await told.has('10.0.0.1:9100,10.0.0.2:9100', source)
  assert.deepEqual(
    server.asked.filter(name => name.startsWith('shop')),
    ['shop.default.svc.cluster.local', 'shop.svc.cluster.local'],
  )
})

test('it stops while a server says nothing', async () => {
  server.zone['shop.test'] = 'silent'
  start({})
  await until('it was asked', 20_000, () => server.asked.length > 0)
  source.stop()
  assert.equal(told.times, 0)
})
