import type { MetadataService } from '../lib/metadata-service.ts'
import type { Cloud } from './entity.ts'

/**
 * What the firmware says of the machine: files of /sys/class/dmi/id (SMBIOS), and the hypervisor's of
 * /sys/hypervisor/uuid (Xen). '' for what is not there.
 */
export interface Dmi {
  readonly bios_vendor: string
  readonly bios_version: string
  readonly board_asset_tag: string
  readonly chassis_asset_tag: string
  readonly product_name: string
  readonly product_serial: string
  readonly product_uuid: string
  readonly sys_vendor: string
  readonly hypervisor_uuid: string
}

/** A cloud that tells a machine of itself: a unit of src/identity/discovery. */
export interface CloudProvider {
  /** Of its settings: `cloud.<name>`. */
  readonly name: 'aws' | 'gcp' | 'azure' | 'alibaba' | 'oracle' | 'digitalocean'
  /** In one sentence. */
  readonly summary: string
  /** Where its metadata service is, on every machine of it. */
  readonly endpoint: string
  /** Whether the machine says that it is one of this cloud. Without that nothing goes on the network. */
  recognise(dmi: Dmi): boolean
  /** What the service tells of the machine. Rejects with a `MetadataError`, also where it is no such service. */
  read(service: MetadataService): Promise<Cloud>
}
