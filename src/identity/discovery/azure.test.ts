import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  firmware,
  machines,
  readCloud,
  startMetadataService,
} from '../../../test/helpers/metadata-services.ts'
import { azure } from './azure.ts'

test('a machine of Azure is told by its asset tag, and another Hyper-V is none', () => {
  const check = (told: Parameters<typeof firmware>[0], want: boolean) =>
    assert.equal(azure.recognise(firmware(told)), want, JSON.stringify(told))
  check(machines.azure, true)
  check({ sys_vendor: 'Microsoft Corporation', product_name: 'Virtual Machine' }, false)
  check({}, false)
})

test('what Azure tells of its machine is read, with the marketplace name of the image', async t => {
  const service = await startMetadataService('azure')
  t.after(service.stop)
  assert.deepEqual(await readCloud(azure, service.endpoint), {
    provider: 'azure',
    platform: 'azure.vm',
    region: 'westeurope',
    zone: '2',
    account: '8d10da13-8125-4ba9-a717-bf7490507b3d',
    resourceId:
      '/subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/resourceGroups/shop/providers/Microsoft.Compute/virtualMachines/shop-1',
    instanceId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
    instanceName: 'shop-1',
    instanceType: 'Standard_D2s_v5',
    imageId: 'Debian:debian-12:12-gen2:latest',
  })
})

test('an image of one’s own has its identifier, and an unknown one none', async t => {
  const service = await startMetadataService('azure')
  t.after(service.stop)
  const check = async (imageReference: unknown, want: string) => {
    service.document = JSON.stringify({ vmId: 'a', location: 'b', storageProfile: { imageReference } })
    assert.equal((await readCloud(azure, service.endpoint)).imageId, want)
  }
  await check({ id: '/subscriptions/a/images/shop', offer: 'x' }, '/subscriptions/a/images/shop')
  await check({ offer: 'debian-12', publisher: 'Debian' }, '')
  await check(null, '')
  await check([17], '')
})
