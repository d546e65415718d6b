import { collector, type Family, gauge, NoData } from './collector.ts'

/** Labels in rising order, with the file name if it differs. */
const labels: readonly (readonly [label: string, file?: string])[] = [
  ['bios_date'],
  ['bios_release'],
  ['bios_vendor'],
  ['bios_version'],
  ['board_asset_tag'],
  ['board_name'],
  ['board_serial'],
  ['board_vendor'],
  ['board_version'],
  ['chassis_asset_tag'],
  ['chassis_serial'],
  ['chassis_vendor'],
  ['chassis_version'],
  ['product_family'],
  ['product_name'],
  ['product_serial'],
  ['product_sku'],
  ['product_uuid'],
  ['product_version'],
  ['system_vendor', 'sys_vendor'],
]

function infoWith(labels: readonly string[]): Family {
  return gauge(
    'dmi_info',
    'Maker and model of the machine and its parts, as far as they are told; always 1.',
    {
      labels,
    },
  )
}

/** An attribute of /sys is a page at most. */
const mostCharacters = 4096

const directory = 'class/dmi/id'

/** Firmware data about the machine, from /sys/class/dmi/id (SMBIOS). It is constant until the next boot. */
export const dmi = collector({
  name: 'dmi',
  summary: 'Vendor and model of the machine',
  source: '/sys/class/dmi/id',
  enabledByDefault: true,
  metrics: [infoWith(labels.map(([label]) => label))],
  start: (_options, { host: { sys } }) => {
    let known: { readonly info: Family; readonly values: readonly string[] } | undefined
    const read = () => {
      const nothing = new NoData(`${sys.at(directory)} is empty: the firmware has no DMI`)
      if (!sys.exists(directory)) throw nothing
      // Only root can read serial numbers; other users lack these labels.
      const found = labels.flatMap(([label, file = label]) => {
        const value = sys.find(`${directory}/${file}`)
        return value === undefined ? [] : [[label, value.slice(0, mostCharacters)] as const]
      })
      if (found.length === 0) throw nothing
      return { info: infoWith(found.map(([label]) => label)), values: found.map(([, value]) => value) }
    }
    return {
      collect(readings) {
        known ??= read()
        readings.setAll(known.info, 1, known.values)
      },
    }
  },
})
