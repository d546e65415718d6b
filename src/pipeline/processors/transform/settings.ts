import { item, list } from '../../../foundation/schema/collections.ts'
import { boolean, someText } from '../../../foundation/schema/kinds.ts'
import { branch, type Infer, type Kind, key } from '../../../foundation/schema/tree.ts'
import { actionFault } from './actions.ts'
import { type ActionSettings, actionKeys, matchKeys, type RuleSettings } from './keys.ts'
import { ruleFault } from './rule-fault.ts'

/** Required keys by type of action. */
const needs: Readonly<Record<ActionSettings['type'], readonly string[]>> = {
  set_attribute: ['key', 'value'],
  delete_attribute: ['key'],
  rename_attribute: ['from', 'to'],
  copy_attribute: ['from', 'to'],
  keep_attributes: ['keys'],
  hash_attribute: ['key'],
  truncate_attribute: ['key', 'length'],
  replace: ['key', 'pattern'],
  replace_body: ['pattern'],
  extract_attributes: ['pattern'],
  set_severity: ['severity'],
  sample: ['ratio'],
  drop: [],
}

const action = item(actionKeys, {
  fault(settings, given) {
    const { type } = settings
    const absent = needs[type].find(name => !given.has(`${type}.${name}`))
    if (absent !== undefined) return `an action of type "${type}" needs "${type}.${absent}"`
    const other = Object.keys(needs).find(name => name !== type && given.has(name))
    return other === undefined
      ? actionFault(settings) || undefined
      : `an action of type "${type}" does not allow "${other}"`
  },
})

const ruleKeys = branch('A transformation rule.', {
  name: key(someText, '', 'Name of the rule in counters.', { required: true }),
  enabled: key(boolean, true, 'Enables the rule.'),
  match: matchKeys,
  actions: key(list(action), [], 'Actions, in this order; without actions the rule only counts.', {
    required: true,
  }),
})

const anyRules = list(item(ruleKeys, { fault: rule => ruleFault(rule) || undefined }))

/** Rules with unique names, like their counters. */
const rules: Kind<readonly RuleSettings[]> = {
  ...anyRules,
  read(value, path, report) {
    const read = anyRules.read(value, path, report)
    const twice = read?.find(({ name }, i) => read.findIndex(other => other.name === name) < i)
    if (twice === undefined) return read
    report.problem(value.place, path, `duplicate rule name "${twice.name}"; give each rule its own`)
    return undefined
  },
}

export const transformation = branch('Rules that change telemetry.', {
  enabled: key(boolean, false, 'Enables the rules.'),
  rules: key(rules, [], 'Rules, in this order.'),
})

/** Settings of the processor. */
export interface TransformSettings {
  readonly transform: Infer<typeof transformation>
}
