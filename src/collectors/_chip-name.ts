import { posix } from 'node:path'

/** A text as a label for people and rules: lower case, all but letters, digits, `:` and `_` as `_`, none at the ends. */
export function cleanName(text: string): string {
  const clean = text.toLowerCase().replace(/[^a-z0-9:_]/gu, '_')
  let start = 0
  let end = clean.length
  while (clean[start] === '_') start++
  while (end > start && clean[end - 1] === '_') end--
  return clean.slice(start, end)
}

/**
 * Name of a chip by the real path of its device, with the directory above it: `platform_coretemp_0`. It stays the same
 * from boot to boot, which the numbers of /sys/class/hwmon do not. '' where the path gives none.
 */
export function chipName(devicePath: string): string {
  const device = cleanName(posix.basename(devicePath))
  const above = cleanName(posix.basename(posix.dirname(devicePath)))
  return device === '' || above === '' ? device : `${above}_${device}`
}
