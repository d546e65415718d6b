import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  firmware,
  machines,
  readCloud,
  startMetadataService,
} from '../../../test/helpers/metadata-services.ts'
import { oracle } from './oracle.ts'

test('a machine of Oracle Cloud is told by its asset tag, whatever else it is', () => {
  assert.equal(oracle.recognise(firmware(machines.oracle)), true)
  assert.equal(oracle.recognise(firmware({ sys_vendor: 'Oracle Corporation' })), false)
})

test('what Oracle Cloud tells of its machine is read', async t => {
  const service = await startMetadataService('oracle')
  t.after(service.stop)
  assert.deepEqual(await readCloud(oracle, service.endpoint), {
    provider: 'oracle_cloud',
    platform: 'oracle_cloud_compute',
    region: 'us-phoenix-1',
    zone: 'EMIr:PHX-AD-1',
    account: 'ocid1.tenancy.oc1..exampletenant',
    resourceId: 'ocid1.instance.oc1.phx.exampleuniqueID',
    instanceId: 'ocid1.instance.oc1.phx.exampleuniqueID',
    instanceName: 'shop-1',
    instanceType: 'VM.Standard.E4.Flex',
    imageId: 'ocid1.image.oc1.phx.exampleuniqueID',
  })
})

test('the region has its long name where the service tells one', async t => {
  const service = await startMetadataService('oracle')
  t.after(service.stop)
  const check = async (told: object, want: string) => {
    service.document = JSON.stringify({ id: 'ocid1.instance.oc1.phx.a', region: 'phx', ...told })
    assert.equal((await readCloud(oracle, service.endpoint)).region, want)
  }
  await check({}, 'phx')
  await check({ regionInfo: { regionIdentifier: 'us-phoenix-1' } }, 'us-phoenix-1')
  await check({ regionInfo: 'none', canonicalRegionName: 'us-phoenix-1' }, 'us-phoenix-1')
})
