import { createHash } from 'node:crypto'
import { isLabelName } from './label-names.ts'
import type { RelabelRule, Template } from './relabel-rule.ts'

export {
  compileRelabel,
  type RelabelAction,
  type RelabelFault,
  type RelabelRule,
} from './relabel-rule.ts'

/** Maximum length of a built text, in UTF-16 units: rules can double a value repeatedly. */
const longest = 1024 * 1024
/** Maximum labels to which `labelmap` adds: each rule can double the labels. */
const mostLabels = 4096

/**
 * Applies the rules to the labels in order (Prometheus, "relabel_config"). False if the labels are dropped; their
 * content is then undefined. A label with an empty value is removed. Takes linear time per rule.
 *
 * If `labelmap` gives several labels the same name, the last of them by name wins. Texts are limited to 1 Mi
 * characters: source values are joined up to there, and a rule with a longer result does not change its label. With
 * more than 4,096 labels `labelmap` adds none.
 */
export function relabel(rules: readonly RelabelRule[], labels: Map<string, string>): boolean {
  for (const rule of rules) if (!apply(rule, labels)) return false
  return true
}

function apply(rule: RelabelRule, labels: Map<string, string>): boolean {
  switch (rule.action) {
    case 'keep':
      return rule.regex.test(joined(rule, labels))
    case 'drop':
      return !rule.regex.test(joined(rule, labels))
    case 'keepequal':
      return (labels.get(rule.targetLabel) ?? '') === joined(rule, labels)
    case 'dropequal':
      return (labels.get(rule.targetLabel) ?? '') !== joined(rule, labels)
    case 'replace':
      replace(rule, labels)
      break
    case 'hashmod':
      set(labels, rule.targetLabel, hashMod(joined(rule, labels), rule.modulus))
      break
    case 'lowercase':
      set(labels, rule.targetLabel, lowerCase(joined(rule, labels)))
      break
    case 'uppercase':
      set(labels, rule.targetLabel, upperCase(joined(rule, labels)))
      break
    case 'labelmap':
      mapLabels(rule, labels)
      break
    case 'labeldrop':
      for (const name of labels.keys()) if (rule.regex.test(name)) labels.delete(name)
      break
    case 'labelkeep':
      for (const name of labels.keys()) if (!rule.regex.test(name)) labels.delete(name)
  }
  return true
}

function joined({ sourceLabels, separator }: RelabelRule, labels: ReadonlyMap<string, string>): string {
  let text = sourceLabels.length === 0 ? '' : (labels.get(sourceLabels[0]!) ?? '')
  for (let i = 1; i < sourceLabels.length && text.length <= longest; i++)
    text += separator + (labels.get(sourceLabels[i]!) ?? '')
  return text.length <= longest ? text : text.slice(0, longest)
}

function set(labels: Map<string, string>, name: string, value: string): void {
  if (value === '') labels.delete(name)
  else labels.set(name, value)
}

function replace(rule: RelabelRule, labels: Map<string, string>): void {
  const match = rule.regex.exec(joined(rule, labels))
  if (match === null) return
  const name = expand(rule.target, match)
  const value = expand(rule.value, match)
  if (name !== undefined && value !== undefined && isLabelName(name)) set(labels, name, value)
}

/** Matches the names before the rule; the results are added to the map. */
function mapLabels(rule: RelabelRule, labels: Map<string, string>): void {
  const found: [name: string, value: string][] = []
  for (const [from, value] of [...labels].sort(byName)) {
    const match = rule.regex.exec(from)
    const name = match ? expand(rule.value, match) : undefined
    if (name !== undefined && isLabelName(name)) found.push([name, value])
  }
  for (const [name, value] of found)
    if (labels.size < mostLabels || labels.has(name)) set(labels, name, value)
}

function byName(a: readonly [string, string], b: readonly [string, string]): number {
  return a[0] < b[0] ? -1 : 1
}

/** Undefined if it would be too long. */
function expand(template: Template, match: RegExpExecArray): string | undefined {
  let text = ''
  for (const part of template) {
    text += typeof part === 'string' ? part : captured(part, match)
    if (text.length > longest) return undefined
  }
  return text
}

function captured(numbers: readonly number[], match: RegExpExecArray): string {
  for (let i = numbers.length - 1; i >= 0; i--) {
    const text = match[numbers[i]!]
    if (text !== undefined) return text
  }
  return ''
}

/** Uses the last 8 bytes of the MD5, like Prometheus. */
function hashMod(text: string, modulus: number): string {
  const hash = createHash('md5').update(text).digest()
  return String(hash.readBigUInt64BE(8) % BigInt(modulus))
}

const isAscii = (text: string) => /^[\0-\x7f]*$/.test(text)

// Go's case tables map one character to one, independent of context (Unicode, UnicodeData.txt); JavaScript's may map to
// several, depending on the language (SpecialCasing.txt). Those are left unchanged, except for the one that begins with
// the simple mapping.

function lowerCase(text: string): string {
  if (isAscii(text)) return text.toLowerCase()
  return eachCharacter(text, character => (character === 'İ' ? 'i' : character.toLowerCase()))
}

function upperCase(text: string): string {
  if (isAscii(text)) return text.toUpperCase()
  return eachCharacter(text, character => character.toUpperCase())
}

function eachCharacter(text: string, turn: (character: string) => string): string {
  let out = ''
  for (const character of text) {
    const turned = turn(character)
    out += turned.length === character.length ? turned : character
  }
  return out
}
