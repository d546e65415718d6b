import { posix } from 'node:path'

/**
 * Label value from a text: lower case, with other characters than letters, digits, `:` and `_` replaced by `_`, and
 * none of those at the ends.
 */
export function cleanName(text: string): string {
  const clean = text.toLowerCase().replace(/[^a-z0-9:_]/gu, '_')
  let start = 0
  let end = clean.length
  while (clean[start] === '_') start++
  while (end > start && clean[end - 1] === '_') end--
  return clean.slice(start, end)
}

/**
 * Name of a chip from the real path of its device and the directory above: `platform_coretemp_0`. It is stable
 * across boots, unlike the numbers of /sys/class/hwmon. '' if the path has none.
 */
export function chipName(devicePath: string): string {
  const device = cleanName(posix.basename(devicePath))
  const above = cleanName(posix.basename(posix.dirname(devicePath)))
  return device === '' || above === '' ? device : `${above}_${device}`
}
