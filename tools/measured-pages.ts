// Updates the figures of pages from bench/measured.json: the text between marks comes from that file only.
//
//     <!--=NAME .2-->3.45<!--/-->            a figure with two decimals
//     <!--=NAME NAME .0-->131 to 145<!--/--> the least and the largest of several; * in a name is any one part of it
//     <!--=table footprint-->…<!--/-->       a table; `when NAME` is when and on what machine a script was run
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { footprintTable } from '../bench/lib/footprint-table.ts'
import { scaleTable } from '../bench/lib/scale-table.ts'

/** Figures of a script of bench/, as shown on pages. */
export interface MeasuredScript {
  /** The day, in ISO 8601. */
  readonly on: string
  /** Processor and kernel. */
  readonly machine: string
  /** Remark; '' for none. */
  readonly note: string
  /** Medians by name. */
  readonly figures: Readonly<Record<string, number>>
}

export type Measured = Readonly<Record<string, MeasuredScript>>

/** Pages with marks. */
export const measuredPages = [
  'docs/compare.md',
  'docs/footprint.md',
  'docs/packages.md',
  'docs/develop/capture.md',
  'docs/develop/scraping.md',
] as const

export const measuredFile = 'bench/measured.json'

const root = join(import.meta.dirname, '..')

export function readMeasured(): Measured {
  return JSON.parse(readFileSync(join(root, measuredFile), 'utf8'))
}

/** The page with current figures. */
export function measuredPage(file: string): string {
  return fillMarks(readFileSync(join(root, file), 'utf8'), readMeasured())
}

const marks = /<!--=(.*?)-->.*?<!--\/-->/gs

/** Fills in the figures between the marks of a text. Throws if a figure was not measured. */
export function fillMarks(text: string, measured: Measured): string {
  return text.replace(marks, (_, asked: string) => `<!--=${asked}-->${textOf(asked, measured)}<!--/-->`)
}

/** The text without the content between marks. */
export function withoutMarks(text: string): string {
  return text.replace(marks, '')
}

function textOf(asked: string, measured: Measured): string {
  const [first = '', ...rest] = asked.trim().split(/\s+/)
  if (first === 'when') return whenText(scriptOf(rest[0] ?? '', measured))
  if (first === 'table') return `\n\n${tableOf(rest[0] ?? '', measured)}\n\n`
  const digits = /^\.(\d)$/.exec(rest.pop() ?? '')?.[1]
  if (digits === undefined) throw new Error(`${asked}: write the decimals at its end, such as .0`)
  const values = [first, ...rest].flatMap(name => figuresOf(name, measured))
  const [least, most] = [Math.min(...values), Math.max(...values)].map(value => value.toFixed(Number(digits)))
  return least === most ? least! : `${least} to ${most}`
}

function whenText({ on, machine, note }: MeasuredScript): string {
  return [on, machine, note].filter(text => text !== '').join(', ')
}

function tableOf(name: string, measured: Measured): string {
  const of = (figure: string) => figuresOf(figure, measured)[0]!
  if (name === 'footprint') return footprintTable(of)
  if (name === 'scale') return scaleTable(of)
  throw new Error(`no such table: ${name}`)
}

function scriptOf(name: string, measured: Measured): MeasuredScript {
  const script = Object.hasOwn(measured, name) ? measured[name] : undefined
  if (script === undefined) throw new Error(`${measuredFile} has no script ${name}`)
  return script
}

function figuresOf(name: string, measured: Measured): number[] {
  const parts = name.split('.')
  const values = Object.entries(scriptOf(parts[0]!, measured).figures)
    .filter(([figure]) => {
      const own = figure.split('.')
      return own.length === parts.length && own.every((part, i) => parts[i] === '*' || parts[i] === part)
    })
    .map(([, value]) => value)
  if (values.length === 0) throw new Error(`${measuredFile} has no figure ${name}`)
  return values
}
