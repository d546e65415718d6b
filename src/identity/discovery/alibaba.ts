import { MetadataError } from '../../foundation/lib/metadata-service.ts'
import type { CloudProvider } from '../../foundation/model/cloud-provider.ts'

/** Alibaba Cloud ECS, in security hardening mode, which all machines support (ECS user guide, "Instance metadata"). */
export const alibaba: CloudProvider = {
  name: 'alibaba',
  summary: 'Alibaba Cloud ECS instances, by their metadata service.',
  endpoint: 'http://100.100.100.200',
  recognise: dmi => dmi.sys_vendor === 'Alibaba Cloud' || dmi.product_name === 'Alibaba Cloud ECS',
  async read(service) {
    const token = await service.token({
      path: '/latest/api/token',
      headers: { 'x-aliyun-ecs-metadata-token-ttl-seconds': '60' },
    })
    const headers = { 'x-aliyun-ecs-metadata-token': token }
    const identity = await service.fields({ path: '/latest/dynamic/instance-identity/document', headers })
    const instanceId = identity.text('instance-id')
    const region = identity.text('region-id')
    if (instanceId === '' || region === '')
      throw new MetadataError(
        `cannot use the identity document of ${service.origin}: no instance-id and region-id, so it is not from Alibaba Cloud`,
        'answer',
      )
    const account = identity.text('owner-account-id')
    return {
      provider: 'alibaba_cloud',
      platform: 'alibaba_cloud_ecs',
      region,
      zone: identity.text('zone-id'),
      account,
      // The ARN of RAM's policies.
      resourceId: account === '' ? '' : `acs:ecs:${region}:${account}:instance/${instanceId}`,
      instanceId,
      instanceName: await service.optionalText({ path: '/latest/meta-data/hostname', headers }),
      instanceType: identity.text('instance-type'),
      imageId: identity.text('image-id'),
    }
  },
}
