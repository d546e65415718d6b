import { MetadataError, type MetadataRequest } from '../../foundation/lib/metadata-service.ts'
import type { CloudProvider } from '../../foundation/model/cloud-provider.ts'

/**
 * Google Compute Engine (Compute Engine documentation, "View and query VM metadata"). One request per path: a listing
 * would include the attributes, which are long and may be secret, and an instance number that JSON rounds.
 */
export const gcp: CloudProvider = {
  name: 'gcp',
  summary: 'Google Compute Engine instances, by the metadata server.',
  // Address of metadata.google.internal, without a DNS lookup.
  endpoint: 'http://169.254.169.254',
  // "Google" alone is also the maker of Chromebooks.
  recognise: dmi => dmi.product_name === 'Google Compute Engine' || dmi.product_name === 'Google',
  async read(service) {
    const [instanceId, zonePath, project, instanceName, machineType, imageId] = await Promise.all([
      service.text(question('instance/id')),
      service.text(question('instance/zone')),
      service.text(question('project/project-id')),
      service.optionalText(question('instance/name')),
      service.optionalText(question('instance/machine-type')),
      service.optionalText(question('instance/image')),
    ])
    const zone = lastPart(zonePath)
    if (!/^\d+$/.test(instanceId) || !/^.+-\w+$/.test(zone))
      throw new MetadataError(
        `cannot use the answers of ${service.origin}: no instance number and zone, so they are not from Compute Engine`,
        'answer',
      )
    return {
      provider: 'gcp',
      platform: 'gcp_compute_engine',
      region: zone.slice(0, zone.lastIndexOf('-')),
      zone,
      account: project,
      resourceId: `//compute.googleapis.com/projects/${project}/zones/${zone}/instances/${instanceId}`,
      instanceId,
      instanceName,
      instanceType: lastPart(machineType),
      imageId,
    }
  },
}

function question(path: string): MetadataRequest {
  return {
    path: `/computeMetadata/v1/${path}`,
    headers: { 'metadata-flavor': 'Google' },
    signature: ['metadata-flavor', 'Google'],
  }
}

/** Last part of `projects/123456789012/zones/us-central1-a`. */
function lastPart(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
