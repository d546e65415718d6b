import { createHash } from 'node:crypto'
import { isObject, type JsonObject } from '../../../foundation/lib/json-fields.ts'
import {
  type CapturedGroup,
  type CapturingRegExp,
  capturingRegExp,
} from '../../../foundation/lib/linear-regexp.ts'
import { nearest } from '../../../foundation/lib/nearest.ts'
import { isLabelName, isText } from './label-names.ts'

/** Actions of Prometheus' relabelling (2.55 and 3.x). */
export type RelabelAction =
  | 'replace'
  | 'keep'
  | 'drop'
  | 'keepequal'
  | 'dropequal'
  | 'hashmod'
  | 'labelmap'
  | 'labeldrop'
  | 'labelkeep'
  | 'lowercase'
  | 'uppercase'

/** A compiled rule, with defaults applied. */
export interface RelabelRule {
  readonly action: RelabelAction
  readonly sourceLabels: readonly string[]
  readonly separator: string
  /** Matches the whole value. */
  readonly regex: RegExp
  readonly targetLabel: string
  readonly replacement: string
  readonly modulus: number
  /** `targetLabel` and `replacement`, parsed for `regex`. */
  readonly target: Template
  readonly value: Template
}

/** Texts and groups of a match. A group is a list of capture numbers, of which the last one with a match is used. */
export type Template = readonly (string | readonly number[])[]

/** A fault of a configured rule. */
export interface RelabelFault {
  /** Key in the rule; '' for the rule itself. */
  readonly field: string
  readonly message: string
  readonly hint: string
}

interface ActionFields {
  readonly needsTarget: boolean
  /** Allowed keys besides `action`; undefined if all are allowed, used or not. */
  readonly only: readonly string[] | undefined
  readonly replaces: boolean
}

const values: ActionFields = { needsTarget: true, only: undefined, replaces: true }
const tests: ActionFields = { needsTarget: false, only: undefined, replaces: true }
const cases: ActionFields = { needsTarget: true, only: undefined, replaces: false }
const equals: ActionFields = { needsTarget: true, only: ['source_labels', 'target_label'], replaces: false }
const names: ActionFields = { needsTarget: false, only: ['regex'], replaces: false }

const actions: Readonly<Record<RelabelAction, ActionFields>> = {
  replace: values,
  keep: tests,
  drop: tests,
  keepequal: equals,
  dropequal: equals,
  hashmod: values,
  labelmap: tests,
  labeldrop: names,
  labelkeep: names,
  lowercase: cases,
  uppercase: cases,
}

const defaults: JsonObject = {
  source_labels: [],
  separator: ';',
  regex: '(.*)',
  target_label: '',
  replacement: '$1',
  modulus: 0,
  action: 'replace',
}

/** Maximum source labels of a rule. */
const mostSources = 256

/**
 * Compiles a rule of `relabel_configs` or `metric_relabel_configs` in Prometheus' form, with the defaults and checks of
 * Prometheus 3: names are any Unicode text, `.` matches every character, and the expression has RE2's syntax. Returns
 * all faults if the rule is invalid.
 */
export function compileRelabel(written: unknown): RelabelRule | readonly RelabelFault[] {
  if (!isObject(written)) return [fault('', 'not a relabelling rule', 'use keys such as source_labels')]
  const faults: RelabelFault[] = []
  const rule = new WrittenRule(written, faults)
  const compiled = rule.compile()
  return faults.length === 0 ? compiled : faults
}

function fault(field: string, message: string, hint: string): RelabelFault {
  return { field, message, hint }
}

/** Reads the fields of one rule. Collects faults, and continues with the default. */
class WrittenRule {
  readonly #fields: JsonObject
  readonly #faults: RelabelFault[]

  constructor(fields: JsonObject, faults: RelabelFault[]) {
    this.#fields = fields
    this.#faults = faults
  }

  compile(): RelabelRule {
    this.#checkKeys()
    const action = this.#action()
    const expression = this.#regex()
    const rule = {
      action,
      sourceLabels: this.#sourceLabels(),
      separator: this.#text('separator'),
      regex: expression.regexp,
      targetLabel: this.#text('target_label'),
      replacement: this.#text('replacement'),
      modulus: this.#modulus(),
    }
    this.#check(rule)
    const target = action === 'replace' ? takenApart(rule.targetLabel, expression.groups) : [rule.targetLabel]
    return { ...rule, target, value: takenApart(rule.replacement, expression.groups) }
  }

  #fault(field: string, message: string, hint: string): void {
    this.#faults.push(fault(field, message, hint))
  }

  #checkKeys(): void {
    for (const key of Object.keys(this.#fields)) {
      if (Object.hasOwn(defaults, key)) continue
      const meant = nearest(key, Object.keys(defaults))
      this.#fault(key.slice(0, 64), 'unknown key of a relabelling rule', meant ? `use ${meant}` : 'remove it')
    }
  }

  #action(): RelabelAction {
    const written = this.#written('action')
    const action = typeof written === 'string' ? written.toLowerCase() : ''
    if (Object.hasOwn(actions, action)) return action as RelabelAction
    const known = Object.keys(actions)
    const meant = nearest(action, known)
    this.#fault(
      'action',
      `${shown(written)} is not an action`,
      meant ? `use ${meant}` : `use one of ${known.join(', ')}`,
    )
    return 'replace'
  }

  /** An invalid expression matches nothing. */
  #regex(): CapturingRegExp {
    const source = this.#text('regex')
    try {
      return capturingRegExp(source)
    } catch (error) {
      const { message } = error as Error
      this.#fault('regex', `invalid expression ${shown(source)}: ${message}`, 'use RE2 syntax')
      return { regexp: /(?!)/, groups: [] }
    }
  }

  #sourceLabels(): readonly string[] {
    const written = this.#written('source_labels') ?? []
    if (!Array.isArray(written) || written.length > mostSources) {
      this.#fault('source_labels', `not a list of at most ${mostSources} names`, 'use [one, another]')
      return []
    }
    const strange = written.find(name => typeof name !== 'string' || !isLabelName(name))
    if (strange === undefined) return written as string[]
    this.#fault('source_labels', `${shown(strange)} is not a label name`, 'put names in quotes')
    return []
  }

  #modulus(): number {
    const written = this.#written('modulus') ?? 0
    if (Number.isSafeInteger(written) && (written as number) >= 0) return written as number
    this.#fault(
      'modulus',
      `${shown(written)} is not a whole number below 2^53`,
      'use the number of shards, such as 4',
    )
    return 1
  }

  /** YAML parses unquoted numbers as numbers, and an empty value as null. */
  #text(field: string): string {
    const written = this.#written(field)
    if (written === null) return ''
    if (typeof written === 'number' || typeof written === 'boolean') return String(written)
    if (typeof written === 'string' && isText(written)) return written
    this.#fault(field, `${shown(written)} is not text`, 'put the text in quotes')
    return defaults[field] as string
  }

  #written(field: string): unknown {
    return this.#fields[field] === undefined ? defaults[field] : this.#fields[field]
  }

  #check(rule: Omit<RelabelRule, 'target' | 'value'>): void {
    const { action, targetLabel, replacement, modulus } = rule
    const { needsTarget, only, replaces } = actions[action]
    if (needsTarget && targetLabel === '')
      this.#fault(
        'target_label',
        `${action} requires a label name`,
        'set it to the label to write or compare',
      )
    if (action === 'labelmap' && replacement === '')
      this.#fault('replacement', 'labelmap requires a name', 'use $1, or delete the key')
    if (action === 'hashmod') this.#checkHash(modulus)
    for (const field of Object.keys(defaults)) {
      if (field === 'action' || !this.#isChanged(field)) continue
      if (only !== undefined && !only.includes(field))
        this.#fault(field, `${action} allows only ${only.join(' and ')}`, 'remove it')
      else if (field === 'replacement' && !replaces)
        this.#fault(field, `${action} does not allow a replacement`, 'remove it')
    }
  }

  #checkHash(modulus: number): void {
    if (modulus === 0)
      this.#fault('modulus', 'hashmod requires a number above 0', 'use the number of shards, such as 4')
    try {
      createHash('md5')
    } catch {
      this.#fault(
        'action',
        'MD5 is not available in this runtime (FIPS mode)',
        'use `shard` in the svc configuration instead',
      )
    }
  }

  #isChanged(field: string): boolean {
    const written = this.#written(field)
    if (field === 'source_labels') return Array.isArray(written) && written.length > 0
    return written !== defaults[field] && written !== null
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length <= 64 ? text : `${text.slice(0, 64)}…`
}

/**
 * Parses a template of Go's `Regexp.Expand`: `$1`, `$name`, `${1}` and `${name}`, with the longest possible name; `$$`
 * is a dollar sign, and so is a `$` that begins no group. Missing groups are empty.
 */
function takenApart(template: string, groups: readonly CapturedGroup[]): Template {
  const parts: (string | readonly number[])[] = []
  let text = ''
  let from = 0
  for (const found of template.matchAll(/\$(?:\$|([\p{L}\p{Nd}_]+)|\{([\p{L}\p{Nd}_]+)\})/gu)) {
    text += template.slice(from, found.index)
    from = found.index + found[0].length
    const name = found[1] ?? found[2]
    if (name === undefined) {
      text += '$'
      continue
    }
    if (text !== '') parts.push(text)
    text = ''
    const group = groupOf(name, groups)
    if (group !== undefined) parts.push(group.numbers)
  }
  text += template.slice(from)
  if (text !== '') parts.push(text)
  return parts
}

function groupOf(name: string, groups: readonly CapturedGroup[]): CapturedGroup | undefined {
  // Numbers with leading zeros or from 10^8 on are names.
  if (/^(?:0|[1-9]\d{0,8})$/.test(name)) return groups[Number(name)]
  return groups.find(group => group.name === name)
}
