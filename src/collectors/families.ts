import type { Family } from '../model/collector.ts'

/** Different names that a collector may find in what it reads: more is not what it takes it for. */
const most = 32_768

/**
 * Families that are named by what a collector reads, each made once. `make` answers undefined for names that are not
 * shown. Throws where there are too many names.
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
