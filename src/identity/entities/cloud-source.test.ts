import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  type CloudName,
  type MetadataFake,
  machines,
  startMetadataService,
} from '../../../test/helpers/metadata-services.ts'
import { NetworkNamespace, withoutNamespaces } from '../../../test/helpers/network-namespace.ts'
import type { Dmi } from '../../foundation/model/cloud-provider.ts'
import type { Cloud } from '../../foundation/model/entity.ts'
import { clouds } from '../discovery/index.ts'
import { type CloudProviderSettings, CloudSource } from './cloud-source.ts'

/** A /sys with the firmware of a machine. */
function sysfs(t: TestContext, { hypervisor_uuid = '', ...told }: Partial<Dmi>): string {
  const root = mkdtempSync(join(tmpdir(), 'svc-cloud-'))
  t.after(() => rmSync(root, { recursive: true }))
  const write = (directory: string, name: string, text: string) => {
    mkdirSync(join(root, directory), { recursive: true })
    writeFileSync(join(root, directory, name), `${text}\n`)
  }
  for (const [name, text] of Object.entries(told)) write('class/dmi/id', name, text)
  if (hypervisor_uuid !== '') write('hypervisor', 'uuid', hypervisor_uuid)
  return root
}

type Given = Partial<Record<CloudName, Partial<CloudProviderSettings>>>

function source(t: TestContext, told: Partial<Dmi>, given: Given, refreshMs = 3_600_000) {
  const heard: (Cloud | undefined)[] = []
  const warnings: { readonly reason: string; readonly hint: string }[] = []
  const settings = Object.fromEntries(
    clouds.map(({ name }) => [name, { enabled: true, endpoint: '', timeout: 30_000, ...given[name] }]),
  ) as Record<CloudName, CloudProviderSettings>
  const made = new CloudSource({
    providers: clouds,
    settings,
    refreshMs,
    sysfs: sysfs(t, told),
    sink: { cloud: cloud => heard.push(cloud) },
    warn: (reason, hint) => warnings.push({ reason, hint }),
  })
  t.after(() => made.stop())
  return { source: made, told: heard, warnings }
}

async function fake(t: TestContext, name: CloudName): Promise<MetadataFake> {
  const service = await startMetadataService(name)
  t.after(service.stop)
  return service
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!condition()) {
    assert.ok(Date.now() < deadline, `waited in vain: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** Counts the sockets that this process makes for connections while something runs. */
async function socketsMade(run: () => Promise<unknown>): Promise<number> {
  let made = 0
  const count = () => made++
  subscribe('net.client.socket', count)
  try {
    await run()
  } finally {
    unsubscribe('net.client.socket', count)
  }
  return made
}

test('on a machine of no cloud nothing is connected to, and the reason names what the firmware says', async t => {
  const check = async (told: Partial<Dmi>, reason: RegExp) => {
    const { source: asked, told: heard, warnings } = source(t, told, {})
    assert.equal(await socketsMade(() => asked.start()), 0)
    const { connected, hint, provider, ...state } = asked.state
    assert.deepEqual({ connected, hint, provider }, { connected: false, hint: '', provider: '' })
    assert.match(state.reason, reason)
    assert.deepEqual([heard, warnings], [[undefined], []])
  }
  await check({}, /names no maker/)
  await check({ sys_vendor: 'QEMU', product_name: 'Standard PC' }, /names "QEMU"/)
  await check({ sys_vendor: 'Microsoft Corporation', product_name: 'Virtual Machine' }, /names "Microsoft/)
  await check({ sys_vendor: 'x'.repeat(100_000) }, /names "x{64}"$/)
})

test('a provider that is turned off is not asked on its own machines', async t => {
  const { source: asked } = source(t, machines.aws, {
    aws: { enabled: false, endpoint: 'http://127.0.0.1:1' },
  })
  assert.equal(await socketsMade(() => asked.start()), 0)
  assert.equal(asked.state.reason, 'cloud.aws.enabled is false')
})

test('a machine of each cloud learns what it is from its own service', async t => {
  for (const { name } of clouds) {
    const service = await fake(t, name)
    const {
      source: asked,
      told,
      warnings,
    } = source(t, machines[name], { [name]: { endpoint: service.endpoint } })
    await asked.start()
    assert.equal(told.length, 1, name)
    const { provider, region, instanceId } = told[0]!
    assert.deepEqual(asked.state, { connected: true, reason: '', hint: '', provider, region, instanceId })
    assert.ok(provider !== '' && region !== '' && instanceId !== '')
    assert.deepEqual(warnings, [])
    asked.stop()
  }
})

test('an endpoint that is written is asked on any machine; the first good answer wins, and the others are let go', async t => {
  const [slow, wrong, good] = [await fake(t, 'aws'), await fake(t, 'azure'), await fake(t, 'gcp')]
  slow.misbehaviour = 'hangs'
  slow.everyAnswer = true
  wrong.misbehaviour = '500'
  const { source: asked, told } = source(
    t,
    {},
    {
      aws: { endpoint: slow.endpoint, timeout: 3_600_000 },
      azure: { endpoint: wrong.endpoint },
      gcp: { endpoint: good.endpoint },
    },
  )
  await asked.start()
  assert.equal(asked.state.provider, 'gcp')
  assert.equal(told.length, 1)
  await until(() => slow.connections.size === 0, 'the connection to the one that hangs is closed')
})

test('when all fail, each has its reason and its hint, and there is one warning', async t => {
  const [silent, wrong] = [await fake(t, 'aws'), await fake(t, 'oracle')]
  silent.misbehaviour = 'breaks off'
  silent.everyAnswer = true
  wrong.misbehaviour = 'captive portal'
  const {
    source: asked,
    told,
    warnings,
  } = source(
    t,
    {},
    {
      aws: { endpoint: silent.endpoint },
      oracle: { endpoint: wrong.endpoint },
    },
    20,
  )
  await asked.start()
  const { connected, reason, hint } = asked.state
  assert.equal(connected, false)
  assert.match(
    reason,
    /^aws: cannot read .*HttpPutResponseHopLimit.*; oracle: cannot read .*not JSON but text\/html/,
  )
  assert.match(
    hint,
    /--http-put-response-hop-limit 2; allow svc to reach http:.*cloud\.oracle\.enabled to false$/,
  )
  const asksBefore = wrong.questions.length
  await until(() => wrong.questions.length > asksBefore + 2, 'it is asked again')
  assert.deepEqual(warnings, [{ reason, hint }])
  assert.equal(told.length, 0)
  // And when one answers at last, that is it.
  wrong.misbehaviour = ''
  await until(() => asked.state.connected, 'it answers')
  assert.equal(told[0]?.provider, 'oracle_cloud')
})

test('what was found is refreshed with new tokens, and outlives failures with their reason', async t => {
  const service = await fake(t, 'aws')
  const {
    source: asked,
    told,
    warnings,
  } = source(t, machines.aws, { aws: { endpoint: service.endpoint } }, 20)
  await asked.start()
  const tokens = () => service.questions.filter(question => question.startsWith('PUT')).length
  service.revokeTokens()
  await until(() => told.length > 2, 'it is asked again')
  assert.ok(tokens() > 2, `${tokens()} tokens`)
  assert.deepEqual(told[1], told[0])
  service.misbehaviour = '500'
  await until(() => !asked.state.connected, 'the failure is seen')
  assert.equal(asked.state.provider, 'aws')
  assert.equal(asked.state.region, 'eu-central-1')
  assert.match(asked.state.reason, /HTTP 500; keeping the last answer$/)
  assert.equal(told.includes(undefined), false)
  const { instanceId } = told[0]!
  service.document = JSON.stringify({ instanceId, region: 'eu-central-1', instanceType: 'm7.large' })
  service.misbehaviour = ''
  await until(() => told.at(-1)?.instanceType === 'm7.large', 'it has changed')
  assert.deepEqual([asked.state.connected, asked.state.reason, asked.state.hint], [true, '', ''])
  assert.equal(warnings.length, 1)
})

test('stopping ends what is under way, and nothing is told afterwards', async t => {
  const service = await fake(t, 'azure')
  service.misbehaviour = 'hangs'
  const {
    source: asked,
    told,
    warnings,
  } = source(t, machines.azure, { azure: { endpoint: service.endpoint } })
  const started = asked.start()
  await until(() => service.questions.length === 1, 'it is asked')
  asked.stop()
  await started
  await until(() => service.connections.size === 0, 'the connection is closed')
  assert.deepEqual([told, warnings], [[], []])
  // Before anything was asked, too.
  const { source: early, told: nothing } = source(t, machines.azure, {
    azure: { endpoint: service.endpoint },
  })
  const begun = early.start()
  early.stop()
  await begun
  assert.equal(service.questions.length, 1)
  assert.deepEqual(nothing, [])
})

test('secrets in an endpoint are not shown', async t => {
  const service = await fake(t, 'azure')
  service.misbehaviour = '404'
  const endpoint = service.endpoint.replace('//', '//user:secret@')
  const { source: asked } = source(t, {}, { azure: { endpoint } })
  await asked.start()
  assert.match(asked.state.reason, /HTTP 404/)
  assert.doesNotMatch(JSON.stringify(asked.state), /secret/)
})

interface Seen {
  readonly provider: string
  readonly reason: string
  readonly opens: number
  readonly datagrams: number
}

/**
 * Runs in a network of its own, where the addresses of the services are and an endless desert beyond. Tells what the
 * source found with its usual endpoints, and what the kernel counted.
 */
const inNetwork = (root: string, cases: readonly (readonly [name: string, sysfs: string])[]) => `
  const { readFileSync } = await import('node:fs')
  const at = path => import(${JSON.stringify(root)} + '/' + path)
  const { CloudSource } = await at('src/identity/entities/cloud-source.ts')
  const { clouds } = await at('src/identity/discovery/index.ts')
  const { startMetadataService } = await at('test/helpers/metadata-services.ts')
  const counted = (protocol, field) => {
    const [names, values] = readFileSync('/proc/net/snmp', 'latin1').split('\\n').filter(line => line.startsWith(protocol + ':'))
    return Number(values.split(' ')[names.split(' ').indexOf(field)])
  }
  const seen = {}
  for (const [name, sysfs] of ${JSON.stringify(cases)}) {
    const cloud = clouds.find(cloud => cloud.name === name)
    const fake = cloud && await startMetadataService(name, new URL(cloud.endpoint).hostname, 80)
    const [opens, datagrams] = [counted('Tcp', 'ActiveOpens'), counted('Udp', 'OutDatagrams')]
    const settings = Object.fromEntries(clouds.map(({ name }) => [name, { enabled: true, endpoint: '', timeout: name === 'gcp' || fake ? 30000 : 300 }]))
    const source = new CloudSource({ providers: clouds, settings, refreshMs: 3600000, sysfs, sink: { cloud() {} }, warn() {} })
    await source.start()
    source.stop()
    const { provider, reason } = source.state
    seen[name] = { provider, reason, opens: counted('Tcp', 'ActiveOpens') - opens, datagrams: counted('Udp', 'OutDatagrams') - datagrams }
    await fake?.stop()
  }
  console.log(JSON.stringify(seen))`

test('the usual addresses are the right ones, no name is looked up, and on no cloud no packet leaves', {
  skip: withoutNamespaces,
}, t => {
  const namespace = new NetworkNamespace(t, [
    'link set lo up',
    'addr add 169.254.169.254/32 dev lo',
    'addr add 100.100.100.200/32 dev lo',
    'link add outside type veth peer name nowhere',
    'link set outside up',
    'link set nowhere up',
    'addr add 10.77.0.2/24 dev outside',
    'route add default via 10.77.0.1',
  ])
  const cases = [
    ...clouds.map(({ name }) => [name, sysfs(t, machines[name])] as const),
    ['none', sysfs(t, { sys_vendor: 'QEMU' })],
    ['unknown', sysfs(t, {})],
  ] as const
  const seen = namespace.run(inNetwork(resolve(import.meta.dirname, '../../..'), cases)) as Record<
    string,
    Seen
  >
  for (const { name } of clouds) {
    assert.equal(seen[name]!.reason, '', name)
    assert.equal(seen[name]!.provider.split('_')[0], name)
    assert.ok(seen[name]!.opens > 0)
    assert.equal(seen[name]!.datagrams, 0)
  }
  for (const name of ['none', 'unknown']) assert.deepEqual([seen[name]!.opens, seen[name]!.datagrams], [0, 0])
})

test('a service that cannot be reached is given up in time, and the hint names its address', {
  skip: withoutNamespaces,
}, t => {
  const namespace = new NetworkNamespace(t, [
    'link set lo up',
    'link add outside type veth peer name nowhere',
    'link set outside up',
    'link set nowhere up',
    'addr add 10.77.0.2/24 dev outside',
    'route add default via 10.77.0.1',
  ])
  const script = `
    const at = path => import(${JSON.stringify(resolve(import.meta.dirname, '../../..'))} + '/' + path)
    const { CloudSource } = await at('src/identity/entities/cloud-source.ts')
    const { clouds } = await at('src/identity/discovery/index.ts')
    const settings = Object.fromEntries(clouds.map(({ name }) => [name, { enabled: true, endpoint: '', timeout: 300 }]))
    const source = new CloudSource({
      providers: clouds, settings, refreshMs: 3600000, sysfs: ${JSON.stringify(sysfs(t, machines.aws))},
      sink: { cloud() {} }, warn() {},
    })
    await source.start()
    source.stop()
    console.log(JSON.stringify(source.state))`
  const { reason, hint } = namespace.run(script) as { reason: string; hint: string }
  assert.match(reason, /^aws: cannot read http:\/\/169\.254\.169\.254\/latest\/api\/token: /)
  assert.match(reason, /no connection within 300 ms|EHOSTUNREACH/)
  assert.match(hint, /allow svc to reach http:\/\/169\.254\.169\.254 \(firewalls/)
})
