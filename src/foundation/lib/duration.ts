const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/**
 * Parses a duration such as `500ms`, `30s`, `1.5h` or `1h30m` to milliseconds; undefined if invalid. Units: ns, us, ms,
 * s, m, h and d. A bare `0` needs none.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  if (text === '' || text.length > 64) return undefined
  const part = /(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/y
  let ms = 0
  while (part.lastIndex < text.length) {
    const match = part.exec(text)
    if (!match) return undefined
    ms += Number(match[1]) * unitMs[match[2]!]!
  }
  // Decimal fractions of a unit are not exact in binary.
  return Number(ms.toFixed(6))
}

/** Formats milliseconds, omitting units that are zero: `24h15m30s`, `1.5s`, `500ms`, `0s`. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (ms === 0) return '0s'
  if (ms < 1000) return `${ms}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor((ms % 3_600_000) / 60_000)
  const seconds = Number(((ms % 60_000) / 1000).toFixed(9))
  return (hours ? `${hours}h` : '') + (minutes ? `${minutes}m` : '') + (seconds ? `${seconds}s` : '')
}
