import { anchoredRegExp } from '../../../foundation/lib/linear-regexp.ts'

/** Which families the page has, and which labels. The keys of `cardinality`, spelled as in the file. */
export interface BoundsSettings {
  readonly enabled: boolean
  readonly max_metrics: number
  readonly include_metrics: readonly string[]
  readonly exclude_metrics: readonly string[]
  readonly drop_labels: readonly string[]
}

export interface Bounds {
  /** 0: no limit. */
  readonly mostFamilies: number
  readonly dropsLabels: boolean
  shows(name: string): boolean
  drops(label: string): boolean
}

/** The bounds that the settings ask for. */
export function boundsOf(settings: BoundsSettings): Bounds {
  if (!settings.enabled) return { mostFamilies: 0, dropsLabels: false, shows: () => true, drops: () => false }
  const include = settings.include_metrics.map(anchoredRegExp)
  const exclude = settings.exclude_metrics.map(anchoredRegExp)
  const dropped = new Set(settings.drop_labels)
  return {
    mostFamilies: settings.max_metrics,
    dropsLabels: dropped.size > 0,
    shows: name =>
      (include.length === 0 || include.some(pattern => pattern.test(name))) &&
      !exclude.some(pattern => pattern.test(name)),
    drops: label => dropped.has(label),
  }
}
