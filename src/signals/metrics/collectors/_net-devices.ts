import { NoData, type Tree } from './collector.ts'

/** Names of network devices from sysfs. Throws `NoData` if sysfs has no such class. */
export function netDevices(sys: Tree): readonly string[] {
  const names = sys.list('class/net')
  if (names.length === 0 && !sys.exists('class/net')) throw new NoData(`${sys.at('class/net')} not found`)
  // The only entry that is not a device: a file of the bonding driver.
  return names.filter(name => name !== 'bonding_masters')
}
