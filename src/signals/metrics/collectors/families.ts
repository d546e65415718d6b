import type { Family } from '../../../foundation/model/collector.ts'

/** Maximum names in the data of a collector; more are not plausible. */
const most = 32_768

/**
 * Families with names from the data of a collector, each created once. `make` returns undefined for names that are not
 * shown. Throws for too many names.
 */
export function families(make: (name: string) => Family | undefined): (name: string) => Family | undefined {
  const known = new Map<string, Family | undefined>()
  return name => {
    const before = known.get(name)
    if (before !== undefined || known.has(name)) return before
    if (known.size >= most) throw new Error(`cannot show more than ${most} different metrics`)
    const made = make(name)
    known.set(name, made)
    return made
  }
}

/** A text as part of a metric's name. */
export function metricName(text: string): string {
  return text.replace(/[^a-zA-Z0-9_:]/g, '_')
}
