import { anchoredRegExp } from '../../../foundation/lib/linear-regexp.ts'

/** Selection of families and labels on the page. The keys of `cardinality`, named as in the configuration. */
export interface BoundsSettings {
  readonly enabled: boolean
  readonly max_metrics: number
  readonly include_metrics: readonly string[]
  readonly exclude_metrics: readonly string[]
  readonly drop_labels: readonly string[]
}

export interface Bounds {
  /** 0 for no limit. */
  readonly mostFamilies: number
  readonly dropsLabels: boolean
  shows(name: string): boolean
  drops(label: string): boolean
}

/** Limits of the settings. */
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
