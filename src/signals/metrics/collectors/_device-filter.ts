import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { small } from '../../../foundation/lib/small-tables.ts'

/** Maximum cached names. */
const mostKept = 4096

/** Regular expressions; an empty text or list is no pattern. */
export type Patterns = string | readonly string[]

export interface DeviceFilterOptions {
  readonly include: Patterns
  readonly exclude: Patterns
  /** Default of `exclude`: an `include` replaces it instead of conflicting with it. */
  readonly defaultExclude?: Patterns
}

/**
 * Filter of devices by name: all that `include` matches, or all that `exclude` does not match. Throws if both
 * are set. `what` is the collector, for the message.
 */
export function deviceFilter(
  { include, exclude, defaultExclude = [] }: DeviceFilterOptions,
  what: string,
): (name: string) => boolean {
  const wanted = patterns(include)
  const isDefault = String(exclude) === String(defaultExclude)
  const unwanted = wanted.length > 0 && isDefault ? [] : patterns(exclude)
  if (wanted.length > 0 && unwanted.length > 0)
    throw new Error(`cannot filter devices of ${what}: include and exclude are both set; delete one`)
  const known = small(new BoundedMap<string, boolean>(mostKept))
  return name => {
    const before = known.get(name)
    if (before !== undefined) return before
    const shown =
      (wanted.length === 0 || wanted.some(pattern => pattern.test(name))) &&
      !unwanted.some(pattern => pattern.test(name))
    known.set(name, shown)
    return shown
  }
}

function patterns(sources: Patterns): readonly RegExp[] {
  return [sources]
    .flat()
    .filter(source => source !== '')
    .map(linearRegExp)
}
