import { MetadataError, type MetadataFields } from '../../foundation/lib/metadata-service.ts'
import type { CloudProvider } from '../../foundation/model/cloud-provider.ts'

/** Azure virtual machines (Azure documentation, "Azure Instance Metadata Service"). */
export const azure: CloudProvider = {
  name: 'azure',
  summary: 'Azure virtual machines, by the instance metadata service.',
  endpoint: 'http://169.254.169.254',
  // Every Hyper-V has the vendor Microsoft. All machines of Azure have this number, and no others.
  recognise: dmi => dmi.chassis_asset_tag === '7783-7084-3265-9085-8269-3286-77',
  async read(service) {
    const compute = await service.fields({
      path: '/metadata/instance/compute?api-version=2021-02-01&format=json',
      headers: { metadata: 'true' },
    })
    const instanceId = compute.text('vmId')
    const region = compute.text('location')
    if (instanceId === '' || region === '')
      throw new MetadataError(
        `cannot use the answer of ${service.origin}: no vmId and location, so it is not from Azure`,
        'answer',
      )
    return {
      provider: 'azure',
      platform: 'azure.vm',
      region,
      zone: compute.text('zone'),
      account: compute.text('subscriptionId'),
      resourceId: compute.text('resourceId'),
      instanceId,
      instanceName: compute.text('name'),
      instanceType: compute.text('vmSize'),
      imageId: image(compute.inner('storageProfile').inner('imageReference')),
    }
  },
}

/** Custom images have an identifier, marketplace images a name in four parts. */
function image(reference: MetadataFields): string {
  const parts = ['publisher', 'offer', 'sku', 'version'].map(name => reference.text(name))
  return reference.text('id') || (parts.includes('') ? '' : parts.join(':'))
}
