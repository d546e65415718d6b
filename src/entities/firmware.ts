import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Dmi } from '../model/cloud-provider.ts'

/** An attribute of /sys is a page at most. */
const mostBytes = 4096

/** What the firmware and the hypervisor say of the machine. What is not there, or not for us to read, is ''. */
export async function readDmi(sysfs: string): Promise<Dmi> {
  const [
    bios_vendor,
    bios_version,
    board_asset_tag,
    chassis_asset_tag,
    product_name,
    product_serial,
    product_uuid,
    sys_vendor,
    hypervisor_uuid,
  ] = await Promise.all([
    line(sysfs, 'class/dmi/id/bios_vendor'),
    line(sysfs, 'class/dmi/id/bios_version'),
    line(sysfs, 'class/dmi/id/board_asset_tag'),
    line(sysfs, 'class/dmi/id/chassis_asset_tag'),
    line(sysfs, 'class/dmi/id/product_name'),
    // These two are for root only.
    line(sysfs, 'class/dmi/id/product_serial'),
    line(sysfs, 'class/dmi/id/product_uuid'),
    line(sysfs, 'class/dmi/id/sys_vendor'),
    line(sysfs, 'hypervisor/uuid'),
  ])
  return {
    bios_vendor,
    bios_version,
    board_asset_tag,
    chassis_asset_tag,
    product_name,
    product_serial,
    product_uuid,
    sys_vendor,
    hypervisor_uuid,
  }
}

async function line(sysfs: string, path: string): Promise<string> {
  let file: FileHandle | undefined
  try {
    file = await open(join(sysfs, path))
    const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes), 0, mostBytes, 0)
    return buffer.toString('latin1', 0, bytesRead).trim()
  } catch {
    // Machines differ in what they have.
    return ''
  } finally {
    await file?.close().catch(() => undefined)
  }
}
