// Names of PCI vendors, devices and classes by number, from the file pci.ids (see the header of that file).

/** Lower-case hexadecimal digits without prefix. */
export interface PciIds {
  readonly vendor: string
  readonly device: string
  readonly subsystemVendor: string
  readonly subsystemDevice: string
  /** Class, subclass and programming interface. */
  readonly class: string
}

/** All names of the file by keys for `pciNames`. Other lines are skipped. */
export function parsePciIds(text: string): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  // Keys of the entries above lines with one tab and with two.
  let outer = ''
  let inner = ''
  for (const line of text.split('\n')) {
    const depth = line.startsWith('\t\t') ? 2 : line.startsWith('\t') ? 1 : 0
    const end = line.indexOf('  ', depth)
    if (end < 0 || line[depth] === '\t' || line[0] === '#') continue
    const id = line.slice(depth, end)
    if (depth === 0) outer = inner = id.startsWith('C ') ? `C${id.slice(2)}` : `V${id}`
    if (depth === 1) inner = `${outer}:${id}`
    names.set(depth === 2 ? `${inner}:${id}` : inner, line.slice(end).trim())
  }
  return names
}

export interface PciNames {
  readonly vendor: string
  readonly device: string
  readonly subsystemVendor: string
  readonly subsystemDevice: string
  readonly class: string
}

/** Names of a device; numbers if there are no names. */
export function pciNames(names: ReadonlyMap<string, string>, ids: PciIds): PciNames {
  const device = `V${ids.vendor}:${ids.device}`
  const [base, sub, interfaceId] = [ids.class.slice(0, 2), ids.class.slice(2, 4), ids.class.slice(4)]
  return {
    vendor: names.get(`V${ids.vendor}`) ?? ids.vendor,
    device: names.get(device) ?? ids.device,
    subsystemVendor: names.get(`V${ids.subsystemVendor}`) ?? ids.subsystemVendor,
    subsystemDevice:
      names.get(`${device}:${ids.subsystemVendor} ${ids.subsystemDevice}`) ?? ids.subsystemDevice,
    class:
      names.get(`C${base}:${sub}:${interfaceId}`) ??
      names.get(`C${base}:${sub}`) ??
      names.get(`C${base}`) ??
      `Unknown class (${ids.class})`,
  }
}
