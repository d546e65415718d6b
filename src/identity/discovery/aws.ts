import {
  MetadataError,
  type MetadataFields,
  type MetadataService,
} from '../../foundation/lib/metadata-service.ts'
import type { CloudProvider, Dmi } from '../../foundation/model/cloud-provider.ts'

/** Seconds. All requests take less than one, and the next round gets its own token. */
const tokenTtl = '60'

/** Amazon EC2: the instance metadata service, version 2 only (EC2 user guide, "Use the Instance Metadata Service"). */
export const aws: CloudProvider = {
  name: 'aws',
  summary: 'Amazon EC2 instances, by the instance metadata service (IMDSv2).',
  endpoint: 'http://169.254.169.254',
  recognise: dmi =>
    dmi.sys_vendor === 'Amazon EC2' ||
    dmi.bios_vendor === 'Amazon EC2' ||
    // Xen with HVM: "4.11.amazon".
    /\.amazon$/.test(dmi.bios_version) ||
    xenUuid(dmi),
  async read(service) {
    const headers = { 'x-aws-ec2-metadata-token': await token(service) }
    const identity = await service.fields({ path: '/latest/dynamic/instance-identity/document', headers })
    const instanceId = identity.text('instanceId')
    const region = identity.text('region')
    if (!/^m?i-/.test(instanceId) || region === '')
      throw new MetadataError(
        `cannot use the identity document of ${service.origin}: no instanceId and region, so it is not from EC2`,
        'answer',
      )
    const [partition, instanceName] = await Promise.all([
      service.optionalText({ path: '/latest/meta-data/services/partition', headers }),
      service.optionalText({ path: '/latest/meta-data/hostname', headers }),
    ])
    return {
      provider: 'aws',
      platform: 'aws_ec2',
      region,
      zone: identity.text('availabilityZone'),
      account: identity.text('accountId'),
      resourceId: arn(partition, identity),
      instanceId,
      instanceName,
      instanceType: identity.text('instanceType'),
      imageId: identity.text('imageId'),
    }
  },
}

/**
 * Old machines on Xen: their UUIDs start with "ec2" (EC2 user guide, "Identify EC2 instances"). So does one in 4096
 * random ones, hence the check of the serial number if there is a firmware (as in cloud-init's ds-identify).
 */
function xenUuid({ product_uuid, product_serial, sys_vendor, bios_vendor, hypervisor_uuid }: Dmi): boolean {
  const uuid = product_uuid.toLowerCase()
  if (uuid !== '') return uuid.startsWith('ec2') && product_serial.toLowerCase() === uuid
  return sys_vendor === '' && bios_vendor === '' && hypervisor_uuid.toLowerCase().startsWith('ec2')
}

async function token(service: MetadataService): Promise<string> {
  try {
    return await service.token({
      path: '/latest/api/token',
      headers: { 'x-aws-ec2-metadata-token-ttl-seconds': tokenTtl },
    })
  } catch (error) {
    throw explained(error)
  }
}

/** Adds a hint for the two settings that block the metadata service. */
function explained(error: unknown): unknown {
  if (!(error instanceof MetadataError)) return error
  const command = 'aws ec2 modify-instance-metadata-options --instance-id <id>'
  // This response may have a time to live of 1, which a container's bridge uses up.
  if (error.fault === 'silent')
    return new MetadataError(
      `${error.message}; in a container, an HttpPutResponseHopLimit of 1 blocks the token`,
      error.fault,
      {
        cause: error,
        hint: `run svc in the host network, or run ${command} --http-put-response-hop-limit 2`,
      },
    )
  if (error.status === 403)
    return new MetadataError(
      `${error.message}; the HttpEndpoint of the machine may be disabled`,
      error.fault,
      {
        status: 403,
        cause: error,
        hint: `run ${command} --http-endpoint enabled, or set cloud.aws.enabled to false`,
      },
    )
  return error
}

/** '' if a part of it is unknown. */
function arn(partition: string, identity: MetadataFields): string {
  const account = identity.text('accountId')
  return partition === '' || account === ''
    ? ''
    : `arn:${partition}:ec2:${identity.text('region')}:${account}:instance/${identity.text('instanceId')}`
}
