/** Prometheus' base units, and other units that exporters use, in UCUM's case-sensitive form. */
const words: Readonly<Record<string, string>> = {
  days: 'd',
  hours: 'h',
  minutes: 'min',
  seconds: 's',
  milliseconds: 'ms',
  microseconds: 'us',
  nanoseconds: 'ns',
  bits: 'bit',
  bytes: 'By',
  kilobytes: 'kBy',
  megabytes: 'MBy',
  gigabytes: 'GBy',
  terabytes: 'TBy',
  petabytes: 'PBy',
  kibibytes: 'KiBy',
  mebibytes: 'MiBy',
  gibibytes: 'GiBy',
  tebibytes: 'TiBy',
  pebibytes: 'PiBy',
  meters: 'm',
  metres: 'm',
  grams: 'g',
  kilograms: 'kg',
  volts: 'V',
  amperes: 'A',
  joules: 'J',
  watts: 'W',
  hertz: 'Hz',
  celsius: 'Cel',
  kelvin: 'K',
  ratio: '1',
  percent: '%',
}

const wordOf = new Map(Object.entries(words))

/** Words after `_per_`, in the singular. */
const perWords: readonly (readonly [string, string])[] = [
  ['day', 'd'],
  ['hour', 'h'],
  ['minute', 'min'],
  ['second', 's'],
  ['millisecond', 'ms'],
  ['microsecond', 'us'],
  ['nanosecond', 'ns'],
  ['week', 'wk'],
  ['month', 'mo'],
  ['year', 'a'],
  ['byte', 'By'],
  ['bit', 'bit'],
  ['meter', 'm'],
  ['metre', 'm'],
]

const perWordOf = new Map(perWords)

/**
 * UCUM form of a unit from Prometheus' metadata (`# UNIT`): words become symbols, `foo_per_bar` becomes `foo/bar`
 * (OpenTelemetry specification, Prometheus and OpenMetrics compatibility, metric metadata). Others are unchanged.
 */
export function ucumUnit(unit: string): string {
  const at = unit.indexOf('_per_')
  if (at < 0) return wordOf.get(unit) ?? unit
  const per = unit.slice(at + '_per_'.length)
  const of = unit.slice(0, at)
  return `${wordOf.get(of) ?? of}/${perWordOf.get(per) ?? wordOf.get(per) ?? per}`
}
