import { decimal } from '../../../foundation/lib/scanner.ts'
import { list } from '../../../foundation/schema/collections.ts'
import { someText } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { collector, gauge, type Readings, type Tree, untyped } from './collector.ts'
import { metricName } from './families.ts'

const info = gauge('sysctl_info', 'Always 1; the labels are a word of a parameter, its name and its place.', {
  labels: ['index', 'name', 'value'],
})

/** Selected kernel parameters, from /proc/sys (sysctl(8)). */
export const sysctl = collector({
  name: 'sysctl',
  summary: 'Selected kernel parameters',
  source: '/proc/sys',
  enabledByDefault: false,
  metrics: [info],
  dynamic: 'One metric for each parameter of `include`, or for each of its keys.',
  options: {
    include: key(
      list(someText),
      [],
      'Parameters to show as numbers: `name`, or `name:key,key` to name its numbers.',
    ),
    include_info: key(list(someText), [], 'Parameters to show as text.'),
  },
  start: (options, { host }) => {
    const shown = [
      ...options.include.map(text => numeric(parse(text), host.proc)),
      ...options.include_info.map(text => textual(parse(text), host.proc)),
    ]
    return {
      collect(readings) {
        for (const show of shown) show(readings)
      },
    }
  },
})

interface Parameter {
  readonly name: string
  readonly keys: readonly string[]
}

function parse(text: string): Parameter {
  const colon = text.indexOf(':')
  if (colon < 0) return { name: text, keys: [] }
  return { name: text.slice(0, colon), keys: text.slice(colon + 1).split(',') }
}

type Show = (readings: Readings) => void

function numeric({ name, keys }: Parameter, proc: Tree): Show {
  const family = metricName(`sysctl_${name}`)
  const help = `The parameter ${name}.`
  const single = untyped(family, help)
  const indexed = untyped(family, help, { labels: ['index'] })
  const byKey = keys.map((word, i) =>
    untyped(metricName(`sysctl_${name}_${word}`), `Number ${i} of the parameter ${name}.`),
  )
  return readings => {
    const numbers = wordsOf(name, proc).map(decimal)
    if (numbers.some(Number.isNaN)) throw new Error(`cannot show sysctl ${name}: some values are not numbers`)
    if (keys.length > 0) {
      // The replaced exporter allows no key for a single number.
      if (numbers.length !== keys.length || keys.length === 1)
        throw new Error(`cannot show sysctl ${name}: ${numbers.length} numbers for ${keys.length} keys`)
      for (const [i, keyed] of byKey.entries()) readings.set(keyed, numbers[i]!)
    } else if (numbers.length === 1) readings.set(single, numbers[0]!)
    else for (const [i, number] of numbers.entries()) readings.set(indexed, number, String(i))
  }
}

function textual({ name, keys }: Parameter, proc: Tree): Show {
  if (keys.length > 0)
    throw new Error(`cannot show sysctl ${name} as text: text values have no keys; use ${name} alone`)
  return readings => {
    for (const [i, word] of wordsOf(name, proc).entries()) readings.set(info, 1, String(i), name, word)
  }
}

function wordsOf(name: string, proc: Tree): readonly string[] {
  const text = proc.text(`sys/${name.replaceAll('.', '/')}`).trim()
  if (text === '') throw new Error(`cannot show sysctl ${name}: empty value`)
  return text.split(/\s+/)
}
