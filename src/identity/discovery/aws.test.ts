import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  firmware,
  machines,
  readCloud,
  startMetadataService,
} from '../../../test/helpers/metadata-services.ts'
import { aws } from './aws.ts'

test('a machine of EC2 is told by its vendor, its BIOS, or the identifiers of Xen', () => {
  const check = (told: Parameters<typeof firmware>[0], want: boolean) =>
    assert.equal(aws.recognise(firmware(told)), want, JSON.stringify(told))
  check(machines.aws, true)
  check({ bios_vendor: 'Xen', sys_vendor: 'Xen', bios_version: '4.11.amazon' }, true)
  const uuid = 'EC2E1916-9099-7CAF-FD21-012345ABCDEF'
  check({ sys_vendor: 'Xen', product_uuid: uuid, product_serial: uuid.toLowerCase() }, true)
  check({ hypervisor_uuid: 'ec2e1916-9099-7caf-fd21-012345abcdef' }, true)
  // A Xen of one's own whose random UUID begins so.
  check({ sys_vendor: 'Xen', product_uuid: uuid, product_serial: 'VM-17' }, false)
  check({ sys_vendor: 'Xen', bios_vendor: 'Xen', hypervisor_uuid: uuid }, false)
  check({ hypervisor_uuid: '00000000-0000-0000-0000-000000000000' }, false)
  check({ sys_vendor: 'QEMU' }, false)
  check({}, false)
})

test('the identity document of EC2 is read with a token, and the ARN made of it', async t => {
  const service = await startMetadataService('aws')
  t.after(service.stop)
  assert.deepEqual(await readCloud(aws, service.endpoint), {
    provider: 'aws',
    platform: 'aws_ec2',
    region: 'eu-central-1',
    zone: 'eu-central-1b',
    account: '123456789012',
    resourceId: 'arn:aws:ec2:eu-central-1:123456789012:instance/i-0123456789abcdef0',
    instanceId: 'i-0123456789abcdef0',
    instanceName: 'ip-10-0-3-7.eu-central-1.compute.internal',
    instanceType: 'm5.large',
    imageId: 'ami-0abcdef1234567890',
  })
  assert.equal(service.questions[0], 'PUT /latest/api/token')
  assert.deepEqual(
    service.questions.filter(question => /user-data|iam/.test(question)),
    [],
  )
})

test('a token that never comes names the hop limit and its hint', async t => {
  const service = await startMetadataService('aws')
  t.after(service.stop)
  for (const [misbehaviour, timeoutMs] of [
    ['hangs', 300],
    ['breaks off', 30_000],
  ] as const) {
    service.misbehaviour = misbehaviour
    service.everyAnswer = true
    await assert.rejects(readCloud(aws, service.endpoint, timeoutMs), {
      name: 'MetadataError',
      message: /api\/token: .*HttpPutResponseHopLimit/,
      hint: /host network.*--http-put-response-hop-limit 2/,
    })
  }
  // With the token in hand it is something else.
  service.everyAnswer = false
  await assert.rejects(readCloud(aws, service.endpoint), error => !/HopLimit/.test((error as Error).message))
})

test('a service that is turned off names the option that turns it on', async t => {
  const service = await startMetadataService('gcp')
  t.after(service.stop)
  // It refuses whoever comes without its own header, with 403, as EC2 does when the endpoint is disabled.
  await assert.rejects(readCloud(aws, service.endpoint), {
    message: /HTTP 403; the HttpEndpoint of the machine may be disabled/,
    hint: /--http-endpoint enabled/,
  })
})
