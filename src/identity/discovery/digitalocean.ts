import { MetadataError } from '../../foundation/lib/metadata-service.ts'
import type { CloudProvider } from '../../foundation/model/cloud-provider.ts'

/**
 * DigitalOcean Droplets (DigitalOcean metadata API). Size and image are not reported; zones and accounts do not exist.
 */
export const digitalocean: CloudProvider = {
  name: 'digitalocean',
  summary: 'DigitalOcean Droplets, by their metadata service.',
  endpoint: 'http://169.254.169.254',
  recognise: dmi => dmi.sys_vendor === 'DigitalOcean',
  async read(service) {
    const droplet = await service.fields({ path: '/metadata/v1.json' })
    const instanceId = droplet.text('droplet_id')
    const region = droplet.text('region')
    if (!/^\d+$/.test(instanceId) || region === '')
      throw new MetadataError(
        `cannot use the answer of ${service.origin}: no droplet_id and region, so it is not from DigitalOcean`,
        'answer',
      )
    return {
      // Semantic conventions 1.44 have neither of these values.
      provider: 'digitalocean',
      platform: 'digitalocean_droplet',
      region,
      zone: '',
      account: '',
      resourceId: `do:droplet:${instanceId}`,
      instanceId,
      instanceName: droplet.text('hostname'),
      instanceType: '',
      imageId: '',
    }
  },
}
