import { escapedHelp } from '../../../foundation/lib/label-text.ts'
import type { Distribution } from '../../../foundation/model/collector.ts'
import { numberText } from './number-text.ts'
import type { Page, Series, Source } from './page.ts'

/**
 * The page in OpenMetrics 1.0, with the last readings of `sources`. A counter whose name does not end in `_total` would
 * need another name there, so its type is `unknown`. `mostFamilies`: 0 for no limit.
 */
export function openMetrics(page: Page, sources: ReadonlySet<Source>, mostFamilies: number): string {
  let text = ''
  let families = 0
  let last = ''
  for (const [name, series] of page.read(sources)) {
    if (mostFamilies > 0 && families++ >= mostFamilies) break
    const { type, help } = series[0]!.family
    // `x` and `x_total` would be one family if the second were a counter.
    const counter = type === 'counter' && name.endsWith('_total') && last !== name.slice(0, -6)
    const family = counter ? name.slice(0, -6) : name
    const shown = counter || (type !== 'counter' && type !== 'untyped') ? type : 'unknown'
    last = name
    text += `# TYPE ${family} ${shown}\n# HELP ${family} ${escapedHelp(help, true)}\n`
    for (const one of series)
      text +=
        one.distribution === undefined
          ? `${one.prefix}${one.text}\n`
          : distributionText(name, one, one.distribution)
  }
  return `${text}# EOF\n`
}

function distributionText(name: string, series: Series, { parts, sum, count }: Distribution): string {
  const isHistogram = series.family.type === 'histogram'
  const labels = series.prefix.slice(name.length, -1)
  const open = labels === '' ? '{' : `${labels.slice(0, -1)},`
  const start = isHistogram ? `${name}_bucket${open}le="` : `${name}${open}quantile="`
  let text = ''
  for (const [bound, value] of parts) text += `${start}${boundText(bound)}"} ${numberText(value)}\n`
  if (isHistogram) text += `${start}+Inf"} ${numberText(count)}\n`
  return `${text}${name}_count${labels} ${numberText(count)}\n${name}_sum${labels} ${numberText(sum)}\n`
}

/** A bound in canonical form, in which whole numbers have a fraction. */
function boundText(bound: number): string {
  const text = numberText(bound)
  return /^-?\d+$/.test(text) ? `${text}.0` : text
}
