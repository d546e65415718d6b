import type { MetadataService } from '../lib/metadata-service.ts'
import type { Cloud } from './entity.ts'

/**
 * The firmware's description of the machine: files of /sys/class/dmi/id (SMBIOS), and /sys/hypervisor/uuid (Xen). '' if
 * a file does not exist.
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

/** A cloud with a metadata service: a unit of src/identity/discovery. */
export interface CloudProvider {
  /** Its settings are `cloud.<name>`. */
  readonly name: 'aws' | 'gcp' | 'azure' | 'alibaba' | 'oracle' | 'digitalocean'
  /** One sentence. */
  readonly summary: string
  /** Address of its metadata service, the same on every machine. */
  readonly endpoint: string
  /** True if the firmware identifies this cloud. Otherwise no request is sent. */
  recognise(dmi: Dmi): boolean
  /** Reads the machine's metadata. Rejects with a `MetadataError`, also if the address is no such service. */
  read(service: MetadataService): Promise<Cloud>
}
