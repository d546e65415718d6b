// A metric as a PromQL query.

export interface Asked {
  readonly name: string
  readonly type: string
  /** Only series with this label; undefined: all. */
  readonly only: { readonly label: string; readonly value: string } | undefined
  /** One line per value of this label; '': one per series. */
  readonly split: string
  /** Sums the values of several series; otherwise takes their mean. */
  readonly sums: boolean
}

/** PromQL for the chart: counters as rates over five minutes, histograms as the 95th percentile. */
export function promql({ name, type, only, split, sums }: Asked): string {
  const chosen = only === undefined ? '' : `{${only.label}="${escaped(only.value)}"}`
  const by = (labels: string) => `${sums ? 'sum' : 'avg'} by (${labels}) `
  if (type === 'histogram') {
    const labels = split === '' ? 'le' : `le, ${split}`
    return `histogram_quantile(0.95, sum by (${labels}) (rate(${name}_bucket${chosen}[5m])))`
  }
  const values = type === 'counter' ? `rate(${name}${chosen}[5m])` : `${name}${chosen}`
  return split === '' ? values : `${by(split)}(${values})`
}

function escaped(value: string): string {
  return value.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')
}
