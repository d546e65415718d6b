import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  firmware,
  machines,
  readCloud,
  startMetadataService,
} from '../../../test/helpers/metadata-services.ts'
import { alibaba } from './alibaba.ts'

test('a machine of ECS is told by its vendor or its product', () => {
  assert.equal(alibaba.recognise(firmware(machines.alibaba)), true)
  assert.equal(alibaba.recognise(firmware({ product_name: 'Alibaba Cloud ECS' })), true)
  assert.equal(alibaba.recognise(firmware({ sys_vendor: 'QEMU' })), false)
})

test('the identity document of ECS is read with a token', async t => {
  const service = await startMetadataService('alibaba')
  t.after(service.stop)
  assert.deepEqual(await readCloud(alibaba, service.endpoint), {
    provider: 'alibaba_cloud',
    platform: 'alibaba_cloud_ecs',
    region: 'cn-hangzhou',
    zone: 'cn-hangzhou-i',
    account: '1609128345678901',
    resourceId: 'acs:ecs:cn-hangzhou:1609128345678901:instance/i-bp13znx0m0me8cquu0ab',
    instanceId: 'i-bp13znx0m0me8cquu0ab',
    instanceName: 'iZbp1abcdefghijklmnopZ',
    instanceType: 'ecs.g6e.large',
    imageId: 'debian_12_6_x64_20G_alibase_20260901.vhd',
  })
})
