import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Dmi } from '../../foundation/model/cloud-provider.ts'

/** A sysfs attribute has at most one page. */
const mostBytes = 4096

/** Path of each field below /sys. `product_serial` and `product_uuid` are readable only by root. */
const places: Readonly<Record<keyof Dmi, string>> = {
  bios_vendor: 'class/dmi/id/bios_vendor',
  bios_version: 'class/dmi/id/bios_version',
  board_asset_tag: 'class/dmi/id/board_asset_tag',
  chassis_asset_tag: 'class/dmi/id/chassis_asset_tag',
  product_name: 'class/dmi/id/product_name',
  product_serial: 'class/dmi/id/product_serial',
  product_uuid: 'class/dmi/id/product_uuid',
  sys_vendor: 'class/dmi/id/sys_vendor',
  hypervisor_uuid: 'hypervisor/uuid',
}

/** Firmware and hypervisor fields of the machine. Missing and unreadable fields are ''. */
export async function readDmi(sysfs: string): Promise<Dmi> {
  const fields = Object.entries(places).map(async ([name, path]) => [name, await line(sysfs, path)] as const)
  return Object.fromEntries(await Promise.all(fields)) as unknown as Dmi
}

async function line(sysfs: string, path: string): Promise<string> {
  let file: FileHandle | undefined
  try {
    file = await open(join(sysfs, path))
    const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes), 0, mostBytes, 0)
    return buffer.toString('latin1', 0, bytesRead).trim()
  } catch {
    // Not every machine has every field.
    return ''
  } finally {
    await file?.close().catch(() => undefined)
  }
}
