import { isUtf8 } from 'node:buffer'

// A second reader of pages of metrics, written from the grammar of Prometheus' lexers (promlex.l, openmetricslex.l) with
// regular expressions: slow, short, and as different from src/signals/metrics/scraping/page-reader.ts as can be.

export interface ReferenceSample {
  readonly key: string
  readonly name: string
  readonly labels: Map<string, string>
  readonly value: number
  readonly timeUs: number
  readonly exemplar: { labels: Map<string, string>; value: number; timeUs: number } | undefined
}

export interface ReferencePage {
  readonly samples: readonly ReferenceSample[]
  readonly families: readonly {
    name: string
    type: string
    help: string
    unit: string
    from: number
    to: number
  }[]
  readonly badLines: number
}

const plain = '[a-zA-Z_][a-zA-Z0-9_]*'
const metric = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const quoted = '"(?:\\\\[^\\n\\0]|[^\\\\"\\0])*"'
const textValue = '"(?:\\\\\\0*[^\\n\\0]|[^\\\\"])*"'
const lineValue = '"(?:\\\\\\0*[^\\n\\0]|[^\\\\"\\n])*"'
const exemplarValue = '"(?:\\\\[^\\n\\0]|[^\\\\"\\n\\0])*"'
const b = '[ \\t]*'

const grammars = {
  text: {
    key: new RegExp(
      `(${metric})?(?:${b}\\{${b}((?:(?:${plain}|${quoted})${b}=${b}${textValue}${b}(?:,${b})?|${quoted}${b}(?:,${b}|(?=\\})))*)\\})?`,
      'y',
    ),
    part: new RegExp(`(${plain}|${quoted})${b}(?:=${b}(${textValue}))?${b},?${b}`, 'y'),
  },
  openmetrics: {
    key: new RegExp(
      `(${metric})?(?:\\{((?:(?:${plain}|${quoted})=${lineValue}(?:,|(?=\\}))|${quoted}(?:,|(?=\\})))*)\\})?`,
      'y',
    ),
    part: new RegExp(`(${plain}|${quoted})(?:=(${lineValue}))?,?`, 'y'),
  },
}
const exemplarKey = new RegExp(
  ` # \\{((?:(?:${plain}|${quoted})=${exemplarValue}(?:,|(?=\\})))*)\\} ([^ \\n]+)(?: ([^ \\n]+))?\\n`,
  'y',
)
const exemplarPart = new RegExp(`(${plain}|${quoted})=(${exemplarValue}),?`, 'y')
const decimal = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?$/i

const suffixes: Record<string, RegExp> = {
  counter: /_(?:total|created)$/,
  histogram: /_(?:bucket|sum|count|created)$/,
  gaugehistogram: /_(?:bucket|gsum|gcount)$/,
  summary: /_(?:sum|count|created)$/,
  info: /_info$/,
}

class Refused extends Error {}

/** The page, or the number of the line that is refused. */
export function referencePage(
  body: Buffer,
  format: 'text' | 'openmetrics',
  lenient: boolean,
): ReferencePage | number {
  const text = body.toString('latin1')
  const told: { word: string; name: string; text: string }[] = []
  const samples: ReferenceSample[] = []
  let badLines = 0
  let at = 0
  let ended = false
  while (at < text.length && !ended) {
    const start = at
    try {
      const next =
        format === 'text' ? textLine(text, at, told, samples) : metricsLine(text, at, told, samples)
      ended = next < 0
      at = next
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      if (!lenient) return text.slice(0, start).split('\n').length
      badLines++
      const end = text.indexOf('\n', start)
      at = end < 0 ? text.length : end + 1
    }
  }
  if (!ended && format === 'openmetrics') return text.split('\n').length
  return { samples, families: familiesOf(samples, told, format), badLines }
}

function textLine(
  text: string,
  from: number,
  told: { word: string; name: string; text: string }[],
  samples: ReferenceSample[],
): number {
  const start = from + match(/[ \t]*/y, text, from)![0].length
  if (start === text.length || text[start] === '\n') return start + 1
  if (text[start] === '\0') return -1
  const comment = match(/#([ \t]*)([^\n]*)\n?/y, text, start)
  if (comment !== null) {
    const [whole, blanks, rest] = comment as unknown as [string, string, string]
    if (blanks === '' ? rest.includes('\0') : rest.startsWith('\0')) return -1
    const meta = blanks === '' ? null : /^(HELP|TYPE)[ \t]+/.exec(rest)
    if (meta === null) return start + whole.length
    let at = start + 1 + blanks!.length + meta[0].length
    const name = match(new RegExp(`${quoted}|${metric}`, 'y'), text, at)
    if (name === null) throw new Refused()
    at += name[0].length
    if (text[at] === '\0') throw new Refused()
    const tail = match(/[^\n]*/y, text, at)![0]
    const said = /^[ \t]*$/.test(tail) ? '' : tail.slice(1)
    if (meta[1] === 'HELP') utf8(said)
    else if (!['counter', 'gauge', 'histogram', 'summary', 'untyped'].includes(said)) throw new Refused()
    const shown =
      meta[1] === 'HELP' ? utf8(said).replace(/\\(\\|n)/g, (_, c) => (c === 'n' ? '\n' : c)) : said
    told.push({ word: meta[1]!, name: nameText(name[0]), text: shown === 'untyped' ? 'unknown' : shown })
    return at + tail.length + 1
  }
  const [key, at] = readKey(text, start, 'text')
  const value = match(
    /[ \t]*([^{ \t\n\0]+)(?=[ \t\n]|$)(?:[ \t]+(-?[0-9]+)(?=[ \t\n]|$))?[ \t]*(?:\n|$)/y,
    text,
    at,
  )
  if (value === null) throw new Refused()
  let timeUs = Number.NaN
  if (value[2] !== undefined) {
    if (BigInt.asIntN(64, BigInt(value[2])) !== BigInt(value[2])) throw new Refused()
    timeUs = Number(value[2]) * 1000 + 0
  }
  samples.push({ ...key, value: number(value[1]!), timeUs, exemplar: undefined })
  return at + value[0].length
}

function metricsLine(
  text: string,
  from: number,
  told: { word: string; name: string; text: string }[],
  samples: ReferenceSample[],
): number {
  if (/^# EOF\n?$/.test(text.slice(from))) return -1
  const meta = match(new RegExp(`# (HELP|TYPE|UNIT) (${quoted}|${metric}) ([^\\n]*)\\n`, 'y'), text, from)
  if (meta !== null) {
    const [whole, word, rawName, said] = meta as unknown as [string, string, string, string]
    const name = nameText(rawName)
    let shown = said
    if (word === 'HELP') shown = meant(utf8(said))
    else if (word === 'TYPE') {
      if (!/^(?:counter|gauge|histogram|gaugehistogram|summary|info|stateset|unknown)$/.test(said))
        throw new Refused()
    } else if (said !== '' && !name.endsWith(`_${text8(said)}`)) throw new Refused()
    told.push({ word, name, text: word === 'UNIT' ? text8(said) : shown })
    return from + whole.length
  }
  const [key, at] = readKey(text, from, 'openmetrics')
  const value = match(/ ([^ \n\0]+)(?=[ \n])(?! # \{\S* \n)/y, text, at)
  if (value === null) throw new Refused()
  let end = at + value[0].length
  let timeUs = Number.NaN
  if (text[end] === ' ' && !text.startsWith(' # {', end)) {
    const time = match(/ ([^ \n\0]+)(?=[ \n])/y, text, end)
    if (time === null) throw new Refused()
    timeUs = seconds(time[1]!)
    end += time[0].length
  }
  let exemplar: ReferenceSample['exemplar']
  if (text[end] === ' ') {
    const found = match(exemplarKey, text, end)
    if (found === null) throw new Refused()
    const labels = new Map<string, string>()
    for (const [, name, said] of all(exemplarPart, found[1]!)) {
      if (name === '""') throw new Refused()
      labels.set(nameText(name!, true), meant(utf8(said!.slice(1, -1))))
    }
    exemplar = { labels, value: number(found[2]!), timeUs: found[3] === undefined ? 0 : seconds(found[3]) }
    end += found[0].length
  } else end++
  samples.push({ ...key, value: number(value[1]!), timeUs, exemplar })
  return end
}

function readKey(
  text: string,
  from: number,
  format: 'text' | 'openmetrics',
): [Pick<ReferenceSample, 'key' | 'name' | 'labels'>, number] {
  const { key, part } = grammars[format]
  const found = match(key, text, from)!
  const names = found[1] === undefined ? [] : [found[1]]
  const labels = new Map<string, string>()
  const raw = new Set<string>()
  for (const [, name, value] of all(part, found[2] ?? '')) {
    if (name === '""') throw new Refused()
    if (value === undefined) names.push(nameText(name!, true))
    else {
      const label = nameText(name!, true)
      if (raw.has(label) || ((name === label || name === `"${label}"`) && label === '__name__'))
        throw new Refused()
      raw.add(label)
      labels.set(label, meant(utf8(value.slice(1, -1))))
    }
  }
  if (names.length !== 1) throw new Refused()
  return [{ key: found[0], name: names[0]!, labels }, from + found[0].length]
}

function familiesOf(
  samples: readonly ReferenceSample[],
  told: readonly { word: string; name: string; text: string }[],
  format: string,
): ReferencePage['families'] {
  const last = (word: string, name: string) =>
    told.findLast(line => line.word === word && line.name === name)?.text
  const families: { name: string; type: string; help: string; unit: string; from: number; to: number }[] = []
  for (const [index, { name }] of samples.entries()) {
    let of = name
    if (last('TYPE', name) === undefined) {
      const base = name.replace(/_[^_]*$/, '')
      const suffix = suffixes[last('TYPE', base) ?? '']
      const isCreated = name.endsWith('_created') && format === 'text'
      if (base !== '' && base !== name && suffix?.test(name) === true && !isCreated) of = base
    }
    const previous = families.at(-1)
    if (previous?.name === of) previous.to = index + 1
    else
      families.push({
        name: of,
        type: last('TYPE', of) ?? 'unknown',
        help: last('HELP', of) ?? '',
        unit: last('UNIT', of) ?? '',
        from: index,
        to: index + 1,
      })
  }
  return families
}

function number(token: string): number {
  if (/^nan$/i.test(token)) return Number.NaN
  const infinite = /^([+-]?)inf(?:inity)?$/i.exec(token)
  if (infinite !== null) return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  const value = decimal.test(token) ? Number(token) : Number.NaN
  if (!Number.isFinite(value)) throw new Refused()
  return value
}

function seconds(token: string): number {
  const value = number(token)
  if (!Number.isFinite(value)) throw new Refused()
  const us = Math.round(value * 1e6)
  return Number.isFinite(us) ? us + 0 : Math.sign(us) * Number.MAX_VALUE
}

function nameText(name: string, mustBeUtf8 = false): string {
  if (!name.startsWith('"')) return name
  const inner = name.slice(1, -1)
  return meant(mustBeUtf8 ? utf8(inner) : text8(inner))
}

function meant(text: string): string {
  return text.replace(/\\(\\|n|")/g, (_, c) => (c === 'n' ? '\n' : c))
}

function text8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

function utf8(latin1: string): string {
  if (!isUtf8(Buffer.from(latin1, 'latin1'))) throw new Refused()
  return text8(latin1)
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(text)
}

function* all(pattern: RegExp, text: string): Generator<RegExpExecArray> {
  for (let at = 0; at < text.length; ) {
    const found = match(pattern, text, at)
    if (found === null) throw new Error('the grammar contradicts itself')
    yield found
    at += found[0].length
  }
}
