// Profiles as text, for `debug=1`.

import { frameText, type StackProfile, type ValueType } from './stack-profile.ts'

const rows = 100

/** Functions with their values: `flat` in the function itself, `cum` including its callees. At most 100 rows. */
export function profileTable({
  name,
  types,
  shown,
  samples,
  durationMs,
  period,
  comments,
}: StackProfile): string {
  const valueType = types[shown]!
  const code = new Map<string, { flat: number; cum: number }>()
  let total = 0
  for (const { stack, values } of samples) {
    const value = values[shown]!
    total += value
    const seen = new Set<string>()
    for (const [index, frame] of stack.entries()) {
      const text = frameText(frame)
      let row = code.get(text)
      if (!row) {
        row = { flat: 0, cum: 0 }
        code.set(text, row)
      }
      if (index === 0) row.flat += value
      if (!seen.has(text)) row.cum += value // recursion counts once
      seen.add(text)
    }
  }
  const cell = (value: number) =>
    `${format(value, valueType).padStart(12)} ${((total > 0 ? value / total : 0) * 100).toFixed(1).padStart(5)}%`
  const sorted = [...code].sort(([, a], [, b]) => b.flat - a.flat || b.cum - a.cum)
  const lines = [
    `${name}: ${valueType.type}, total ${format(total, valueType)}, one sample for ${format(period.value, period)}${
      durationMs === undefined ? '' : `, during ${(durationMs / 1000).toFixed(2)} s`
    }`,
    ...comments.map(comment => `# ${comment}`),
    `${'flat'.padStart(12)} ${'flat%'.padStart(6)} ${'cum'.padStart(12)} ${'cum%'.padStart(6)}`,
  ]
  for (const [text, { flat, cum }] of sorted.slice(0, rows)) lines.push(`${cell(flat)} ${cell(cum)}  ${text}`)
  if (sorted.length > rows) lines.push(`# ${sorted.length - rows} more`)
  return `${lines.join('\n')}\n`
}

/** One stack after another, highest counts first, as Go prints its goroutines. */
export function stackList({ name, shown, samples, comments }: StackProfile): string {
  let total = 0
  for (const { values } of samples) total += values[shown]!
  const lines = [`${name} profile: total ${total}`, ...comments.map(comment => `# ${comment}`)]
  for (const { stack, values } of [...samples].sort((a, b) => b.values[shown]! - a.values[shown]!)) {
    const [leaf, ...callers] = stack
    lines.push(
      '',
      `${values[shown]!} @ ${leaf ? frameText(leaf) : ''}`,
      ...callers.map(frame => `#\t${frameText(frame)}`),
    )
  }
  return `${lines.join('\n')}\n`
}

function format(value: number, { unit }: ValueType): string {
  if (unit === 'nanoseconds') return `${(value / 1e6).toFixed(1)}ms`
  if (unit === 'bytes') return `${(value / 1024).toFixed(1)}KiB`
  return String(value)
}
