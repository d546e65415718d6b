// Durations in the form of Prometheus (prometheus/common, model/time.go).

const unitsMs: readonly (readonly [unit: string, ms: number])[] = [
  ['y', 365 * 86_400_000],
  ['w', 7 * 86_400_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
]

const form = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/

/** Milliseconds of a duration such as `1h30m`; undefined if invalid. Units are in order, with whole numbers. */
export function durationOf(text: string): number | undefined {
  if (text === '0') return 0
  const match = text === '' || text.length > 64 ? null : form.exec(text)
  return match ? unitsMs.reduce((sum, [, ms], i) => sum + ms * Number(match[i + 1] ?? 0), 0) : undefined
}

/** Text of a duration in whole milliseconds. Years and weeks are used only if there is no remainder. */
export function durationText(ms: number): string {
  let rest = Math.round(ms)
  if (rest === 0) return '0s'
  let text = ''
  for (const [unit, each] of unitsMs) {
    if ((unit === 'y' || unit === 'w') && rest % each !== 0) continue
    const count = Math.floor(rest / each)
    if (count > 0) text += `${count}${unit}`
    rest -= count * each
  }
  return text
}
