import { MetadataError } from '../../foundation/lib/metadata-service.ts'
import type { CloudProvider } from '../../foundation/model/cloud-provider.ts'

/** Oracle Cloud Infrastructure, version 2 of the service (OCI documentation, "Getting Instance Metadata"). */
export const oracle: CloudProvider = {
  name: 'oracle',
  summary: 'Oracle Cloud instances, by the instance metadata service (v2).',
  endpoint: 'http://169.254.169.254',
  recognise: dmi => dmi.chassis_asset_tag === 'OracleCloud.com',
  async read(service) {
    const instance = await service.fields({
      path: '/opc/v2/instance/',
      headers: { authorization: 'Bearer Oracle' },
    })
    const instanceId = instance.text('id')
    const region =
      instance.text('canonicalRegionName') ||
      instance.inner('regionInfo').text('regionIdentifier') ||
      // Three letters in the oldest regions.
      instance.text('region')
    if (!instanceId.startsWith('ocid1.instance.') || region === '')
      throw new MetadataError(
        `cannot use the answer of ${service.origin}: no OCID and region, so it is not from Oracle Cloud`,
        'answer',
      )
    return {
      provider: 'oracle_cloud',
      platform: 'oracle_cloud_compute',
      region,
      zone: instance.text('availabilityDomain'),
      account: instance.text('tenantId'),
      resourceId: instanceId,
      instanceId,
      instanceName: instance.text('displayName') || instance.text('hostname'),
      instanceType: instance.text('shape'),
      imageId: instance.text('image'),
    }
  },
}
