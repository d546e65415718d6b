import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import {
  firmware,
  type MetadataFake,
  type Misbehaviour,
  machines,
  readCloud,
  startMetadataService,
} from '../../../test/helpers/metadata-services.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { MetadataError } from '../../foundation/lib/metadata-service.ts'
import { clouds } from './index.ts'

const services = new Map<string, MetadataFake>()
before(async () => {
  for (const { name } of clouds) services.set(name, await startMetadataService(name))
})
after(() => Promise.all([...services.values()].map(service => service.stop())))

test('each machine is recognised by its own cloud, and a machine of none by none', () => {
  const named = (told: Parameters<typeof firmware>[0]) =>
    clouds.filter(cloud => cloud.recognise(firmware(told))).map(({ name }) => name)
  for (const { name } of clouds) assert.deepEqual(named(machines[name]), [name])
  const none: Parameters<typeof firmware>[0][] = [
    { sys_vendor: 'QEMU', product_name: 'Standard PC (Q35 + ICH9, 2009)', bios_vendor: 'SeaBIOS' },
    { sys_vendor: 'VMware, Inc.', product_name: 'VMware7,1', bios_vendor: 'VMware, Inc.' },
    { sys_vendor: 'Dell Inc.', product_name: 'PowerEdge R650', chassis_asset_tag: 'Default string' },
    { sys_vendor: 'Microsoft Corporation', product_name: 'Virtual Machine' },
    { sys_vendor: 'OpenStack Foundation', product_name: 'OpenStack Nova' },
    {},
  ]
  for (const told of none) assert.deepEqual(named(told), [], JSON.stringify(told))
})

/** What the reason says of each; the deadline is far away but for those that only it ends. */
const reasons: Readonly<Record<Misbehaviour, RegExp>> = {
  'forgets its tokens': /HTTP 40[13]/,
  unsigned: /another server answered/,
  '404': /HTTP 404/,
  '500': /HTTP 500/,
  redirects: /redirects \(HTTP 302\)/,
  'captive portal': /not JSON but text\/html|not a line of text|another server/,
  huge: /larger than \d+ bytes/,
  'huge, and says so': /larger than \d+ bytes/,
  compressed: /compressed \(gzip\)/,
  'no JSON': /not JSON but application\/json|not a line of text|cannot use the answers/,
  'wrong types': /cannot use the (identity document|answer)/,
  deep: /more than \d+ parts|not a line of text/,
  empty: /not JSON|not a line of text/,
  'breaks off': /cut off|connection was lost/,
  hangs: /no complete answer within 400 ms/,
  trickles: /no complete answer within 400 ms/,
}
const onlySome: Partial<Record<Misbehaviour, readonly string[]>> = {
  'forgets its tokens': ['aws', 'alibaba'],
  unsigned: ['gcp'],
}

for (const [misbehaviour, reason] of Object.entries(reasons) as [Misbehaviour, RegExp][])
  test(`a service that answers wrongly (${misbehaviour}) ends in a reason, and holds no connection`, async () => {
    const timeoutMs = misbehaviour === 'hangs' || misbehaviour === 'trickles' ? 400 : 60_000
    const asked = clouds.filter(({ name }) => onlySome[misbehaviour]?.includes(name) ?? true)
    await Promise.all(
      asked.map(async cloud => {
        const service = services.get(cloud.name)!
        const sentBefore = service.sentBytes
        service.misbehaviour = misbehaviour
        const error: unknown = await readCloud(cloud, service.endpoint, timeoutMs).catch(error => error)
        assert.ok(error instanceof MetadataError, `${cloud.name}: ${JSON.stringify(error)}`)
        assert.match(error.message, reason, cloud.name)
        assert.ok(error.message.length < 400, `it is for people to read: ${error.message}`)
        // What the kernel's buffers hold was sent without being read.
        assert.ok(service.sentBytes - sentBefore < 50e6, `${service.sentBytes - sentBefore} bytes were taken`)
        service.misbehaviour = ''
      }),
    )
    for (const cloud of asked) await noConnection(services.get(cloud.name)!)
  })

test('whatever a document holds, it becomes a cloud of bounded texts or a reason', async () => {
  const names = [
    'instanceId',
    'region',
    'accountId',
    'imageId',
    'vmId',
    'location',
    'storageProfile',
    'droplet_id',
  ]
  const more = [
    'instance-id',
    'region-id',
    'id',
    'canonicalRegionName',
    'regionInfo',
    'tenantId',
    '__proto__',
    'zone',
  ]
  const value = fc.oneof(
    fc.constantFrom('i-0123', 'ocid1.instance.oc1', 'eu-1', 'a'.repeat(5000), 'a\nb', '\ud800', '\u0000'),
    fc.integer(),
    fc.jsonValue({ maxDepth: 3 }),
  )
  const document = fc.oneof(
    fc.dictionary(fc.constantFrom(...names, ...more), value).map(fields => JSON.stringify(fields)),
    fc.json(),
    fc.string(),
  )
  await fc.assert(
    fc.asyncProperty(document, fc.constantFrom(...clouds), async (document, cloud) => {
      const service = services.get(cloud.name)!
      service.document = document
      const found = await readCloud(cloud, service.endpoint).catch((error: unknown) => error)
      if (found instanceof MetadataError) return
      for (const [key, text] of Object.entries(found as object)) {
        assert.equal(typeof text, 'string', key)
        assert.ok(text.length <= 4096 && text.isWellFormed() && !/\p{Cc}/u.test(text), `${key}: ${text}`)
      }
    }),
    { numRuns: soak ? 5000 : 150 },
  )
})

async function noConnection(service: MetadataFake): Promise<void> {
  const deadline = Date.now() + 20_000
  while (service.connections.size > 0) {
    assert.ok(Date.now() < deadline, `${service.connections.size} connections are left`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
