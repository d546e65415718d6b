import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  firmware,
  machines,
  readCloud,
  startMetadataService,
} from '../../../test/helpers/metadata-services.ts'
import { gcp } from './gcp.ts'

test('a machine of Compute Engine is told by its product, and a Chromebook is none', () => {
  const check = (told: Parameters<typeof firmware>[0], want: boolean) =>
    assert.equal(gcp.recognise(firmware(told)), want, JSON.stringify(told))
  check(machines.gcp, true)
  check({ product_name: 'Google' }, true)
  check({ sys_vendor: 'Google', product_name: 'Eve', bios_vendor: 'coreboot' }, false)
  check({}, false)
})

test('each fact of Compute Engine is asked for by itself, and the number of the machine is exact', async t => {
  const service = await startMetadataService('gcp')
  t.after(service.stop)
  assert.deepEqual(await readCloud(gcp, service.endpoint), {
    provider: 'gcp',
    platform: 'gcp_compute_engine',
    region: 'europe-west3',
    zone: 'europe-west3-c',
    account: 'shop-project',
    resourceId:
      '//compute.googleapis.com/projects/shop-project/zones/europe-west3-c/instances/7385713846219837123',
    instanceId: '7385713846219837123',
    instanceName: 'shop-1',
    instanceType: 'e2-medium',
    imageId: 'projects/debian-cloud/global/images/debian-12-bookworm-v20261001',
  })
  assert.deepEqual(
    service.questions.filter(question => /attributes|service-accounts|recursive/.test(question)),
    [],
  )
})

test('an answer without the flavour of Google is that of another server', async t => {
  const service = await startMetadataService('gcp')
  t.after(service.stop)
  service.misbehaviour = 'unsigned'
  await assert.rejects(readCloud(gcp, service.endpoint), /another server answered.*metadata-flavor: Google/)
})
