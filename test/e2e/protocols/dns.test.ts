// owns: ports
import assert from 'node:assert/strict'
import { Resolver } from 'node:dns/promises'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { output } from '../../helpers/load.ts'
import { until } from '../../helpers/program.ts'
import { type NameServer, startDnsmasq, withoutDnsmasq } from '../../helpers/servers/dnsmasq.ts'
import { soak } from '../../helpers/soak.ts'
import { client, type SpanLine, Telemetry } from '../../helpers/telemetry.ts'

const count = soak ? 2_000 : 100
const skip = withoutDnsmasq
const port = 53

let telemetry: Telemetry
let server: NameServer
let agent: AgentProcess

before(async () => {
  if (skip) return
  telemetry = await Telemetry.start()
  server = await startDnsmasq()
  agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [port],
    config: { agent: { ebpf: largeRing } },
  })
})

after(async () => {
  await agent?.stop()
  await server?.close()
  await telemetry?.close()
})

afterEach(() => telemetry?.forget())

/** Of this test's server: others of the host may be asked meanwhile. */
function lookups(): SpanLine[] {
  return telemetry.spans(port).filter(({ attributes }) => attributes['server.address'] === server.address)
}

async function told(atLeast: number): Promise<Record<string, number>> {
  await until(
    () => `${atLeast} lookups are there: ${lookups().length} are`,
    60_000,
    () => lookups().length >= atLeast,
  )
  await telemetry.settle(agent)
  const counts: Record<string, number> = {}
  for (const { name, kind, attributes } of lookups()) {
    assert.equal(kind, client)
    const {
      'dns.question.name': question,
      'network.transport': transport,
      'error.type': error = '',
    } = attributes
    const key = `${name} ${question} ${transport} ${error}`.trim()
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

function dig(...args: string[]): Promise<string> {
  return output('dig', `@${server.address}`, '+tries=1', '+time=5', ...args)
}

test('each lookup of dig has one span, over UDP and TCP', { skip }, async () => {
  await dig('web.test')
  await dig('web.test', 'AAAA')
  await dig('a.nope.test')
  await dig('+tcp', 'web.test')
  await dig('other.example')
  // Its answer over UDP is cut off, so dig asks again over TCP.
  await dig('+noedns', 'big.test', 'TXT')
  const want = {
    'DNS A web.test udp': 1,
    'DNS AAAA web.test udp': 1,
    'DNS A a.nope.test udp NXDOMAIN': 1,
    'DNS A web.test tcp': 1,
    'DNS A other.example udp REFUSED': 1,
    'DNS TXT big.test udp': 1,
    'DNS TXT big.test tcp': 1,
  }
  assert.deepEqual(await told(7), want)
  const [first] = lookups().filter(({ name }) => name === 'DNS A')
  assert.deepEqual(first!.attributes['dns.answers'], ['10.1.2.3'])
})

test('each lookup of a resolver that uses one socket has one span', { skip }, async () => {
  const resolver = new Resolver({ timeout: 2_000, tries: 1 })
  resolver.setServers([server.address])
  for (let i = 0; i < count; i++)
    await Promise.all([resolver.resolve4('web.test'), resolver.resolve6('web.test')])
  await assert.rejects(resolver.resolve4('nope.test'))
  assert.deepEqual(await told(2 * count + 1), {
    'DNS A web.test udp': count,
    'DNS AAAA web.test udp': count,
    'DNS A nope.test udp NXDOMAIN': 1,
  })
})

test('the two lookups that glibc sends at once have a span each', { skip }, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-resolv-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'resolv.conf')
  writeFileSync(file, `nameserver ${server.address}\noptions timeout:5 attempts:1\n`)
  const script = `mount --bind ${file} /etc/resolv.conf && for i in 1 2 3 4 5; do getent ahosts web.test; done`
  const said = await output('unshare', '-m', 'sh', '-c', script)
  assert.match(said, /10\.1\.2\.3/)
  assert.deepEqual(await told(10), { 'DNS A web.test udp': 5, 'DNS AAAA web.test udp': 5 })
})
