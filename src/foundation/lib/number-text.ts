// Formats numbers for people, mostly in few columns.

/** `-`, `85us`, `8.2ms`, `240ms`, `1.2s`, `2m5s`. */
export function msText(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return '-'
  if (ms < 0.9995) return `${Math.round(ms * 1000)}us`
  if (ms < 9.95) return `${trimmed(ms.toFixed(1))}ms`
  if (ms < 999.5) return `${Math.round(ms)}ms`
  if (ms < 9950) return `${trimmed((ms / 1000).toFixed(1))}s`
  if (ms < 59_500) return `${Math.round(ms / 1000)}s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${seconds % 60}s`
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)}h${Math.floor((seconds % 3600) / 60)}m`
  return `${Math.floor(seconds / 86_400)}d${Math.floor((seconds % 86_400) / 3600)}h`
}

/** A rate or share: `0`, `0.04`, `2.4`, `41`, `12k`. */
export function amountText(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (value === 0) return '0'
  if (value < 0.01) return '<.01'
  if (value < 0.095) return value.toFixed(2)
  if (value < 99.95) return value.toFixed(1)
  if (value < 99_950) return String(Math.round(value))
  return value < 9.995e6 ? `${Math.round(value / 1000)}k` : `${Math.round(value / 1e6)}M`
}

/** A count: `0`, `1,234`, `120k`. */
export function countText(count: number): string {
  return count < 99_999.5 ? grouped(count) : amountText(count)
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** Bytes in a sentence: `812 B`, `4.20 MiB`. The live page omits trailing zeros. */
export function bytesText(bytes: number): string {
  return scaledText(bytes, 1024, byteUnits)
}

/**
 * A value in the largest unit that it reaches, with three significant digits: `1.24 s`. Units are a factor of `step`
 * apart.
 */
export function scaledText(value: number, step: number, units: readonly string[]): string {
  let unit = 0
  let left = value
  while (left >= step && unit < units.length - 1) {
    left /= step
    unit++
  }
  const digits = unit === 0 || left >= 100 ? 0 : left >= 10 ? 1 : 2
  return `${left.toFixed(digits)} ${units[unit]}`
}

const sizes = ['B', 'K', 'M', 'G', 'T', 'P']

/** Bytes with a factor of 1024 in a column: `92M`, `5.1G`. */
export function sizeText(bytes: number): string {
  const { value, unit } = sized(bytes)
  return `${value}${unit}`
}

/** A part of a total: `5.1/16G`, `800M/16G`. */
export function partText(part: number, whole: number): string {
  const [a, b] = [sized(part), sized(whole)]
  return a.unit === b.unit ? `${a.value}/${b.value}${b.unit}` : `${a.value}${a.unit}/${b.value}${b.unit}`
}

function sized(bytes: number): { value: string; unit: string } {
  let value = Math.max(0, bytes)
  let unit = 0
  while (value >= 1000 && unit < sizes.length - 1) {
    value /= 1024
    unit++
  }
  return {
    value: unit === 0 || value >= 9.95 ? String(Math.round(value)) : trimmed(value.toFixed(1)),
    unit: sizes[unit]!,
  }
}

/** `1 item`, `2 items`, `1,234 items`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`
}

/** `1,234,567` */
export function grouped(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',')
}

function trimmed(text: string): string {
  return text.endsWith('.0') ? text.slice(0, -2) : text
}
