// Formats numbers and times for display.

const prefixes = ['', 'k', 'M', 'G', 'T', 'P']
const binary = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** Three significant digits: `1.23`, `12.3`, `123`. */
function digits(value: number): string {
  const size = Math.abs(value)
  if (size === 0) return '0'
  if (size < 0.001) return value.toExponential(1)
  return value
    .toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '')
}

/** A number with a prefix: `12.3k`. */
export function short(value: number | null | undefined): string {
  if (value == null || Number.isNaN(value)) return '–'
  let at = 0
  let rest = value
  for (; Math.abs(rest) >= 1000 && at < prefixes.length - 1; at++) rest /= 1000
  return `${digits(rest)}${prefixes[at]}`
}

/** A whole number with thin groups: `12,345`. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}

/** `12.3 MiB`. */
export function bytes(value: number | null | undefined): string {
  if (value == null || Number.isNaN(value)) return '–'
  let at = 0
  let rest = value
  for (; Math.abs(rest) >= 1024 && at < binary.length - 1; at++) rest /= 1024
  return `${digits(rest)} ${binary[at]}`
}

/** A duration in milliseconds: `12 ms`, `1.2 s`, `85 µs`. */
export function duration(ms: number | null | undefined): string {
  if (ms == null || Number.isNaN(ms)) return '–'
  if (ms === 0) return '0'
  if (ms < 0.001) return `${digits(ms * 1e6)} ns`
  if (ms < 1) return `${digits(ms * 1000)} µs`
  if (ms < 1000) return `${digits(ms)} ms`
  if (ms < 60_000) return `${digits(ms / 1000)} s`
  if (ms < 3_600_000) return twoUnits(Math.floor(ms / 1000), 'min', 's')
  return twoUnits(Math.floor(ms / 60_000), 'h', 'min')
}

/** `5 min`, `5 min 12 s`: `count` is in the smaller unit, a 60th of the larger. */
function twoUnits(count: number, larger: string, smaller: string): string {
  const rest = count % 60
  return `${(count - rest) / 60} ${larger}${rest === 0 ? '' : ` ${rest} ${smaller}`}`
}

export function percent(value: number | null | undefined): string {
  return value == null || Number.isNaN(value) ? '–' : `${digits(value)} %`
}

/** A value with its UCUM unit, as in documents. */
export function withUnit(value: number | null | undefined, unit: string): string {
  if (value == null || Number.isNaN(value)) return '–'
  switch (unit) {
    case '%':
      return percent(value)
    case 'By':
    case 'bytes':
      return bytes(value)
    case 'By/s':
      return `${bytes(value)}/s`
    case '1/s':
      return `${short(value)}/s`
    case 's':
      return duration(value * 1000)
    case 'ms':
      return duration(value)
    case 'nanoseconds':
    case 'ns':
      return duration(value / 1e6)
    default:
      return /^[A-Za-z%°]/.test(unit) ? `${short(value)} ${unit}` : short(value)
  }
}

const clock = new Intl.DateTimeFormat([], {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
})

/** `14:03:59` of this browser's time zone. */
export function time(ms: number): string {
  return clock.format(ms)
}

/** The same with milliseconds. */
export function exactTime(ms: number): string {
  return `${clock.format(ms)}.${String(Math.floor(ms % 1000)).padStart(3, '0')}`
}
