// Prometheus names of OTLP metrics ("OTLP Metric points to Prometheus" in the specification).
import type { MetricDeclaration } from '../src/foundation/model/metric-declaration.ts'

/** Names of units (UCUM); others are kept. */
const words: Readonly<Record<string, string>> = {
  s: 'seconds',
  ms: 'milliseconds',
  us: 'microseconds',
  By: 'bytes',
  KiBy: 'kibibytes',
  Cel: 'celsius',
  Hz: 'hertz',
  J: 'joules',
  W: 'watts',
  V: 'volts',
  A: 'amperes',
  '%': 'percent',
  '1': '',
}

/** Includes the unit, unless it is in braces, and `_total` for a counter. */
export function prometheusName({ name, unit, kind }: MetricDeclaration): string {
  const parts = name.split(/[^a-zA-Z0-9]+/)
  const known = parts.filter(part => kind !== 'counter' || part !== 'total')
  for (const word of unitWords(unit, kind === 'gauge')) if (!known.includes(word)) known.push(word)
  if (kind === 'counter') known.push('total')
  return known.join('_')
}

function unitWords(unit: string, gauge: boolean): readonly string[] {
  if (unit === '1' && gauge) return ['ratio']
  const [main = '', per] = unit.replaceAll(/\{[^}]*\}/g, '').split('/')
  const text = words[main] ?? main.replaceAll(/[^a-zA-Z0-9]+/g, '_')
  const after = per === undefined ? [] : ['per', per === 's' ? 'second' : per]
  return [...(text === '' ? [] : [text]), ...after]
}
