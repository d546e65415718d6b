import { list } from '../../../../foundation/schema/collections.ts'
import { compileRelabel, type RelabelFault, type RelabelRule } from '../relabel.ts'
import { anyCount, anyText, entryText } from './fields.ts'
import { form, type Written } from './form.ts'

const fields = {
  source_labels: list(entryText),
  separator: anyText,
  target_label: anyText,
  regex: anyText,
  modulus: anyCount,
  replacement: anyText,
  action: anyText,
} as const

export type WrittenRule = Written<typeof fields>

const rule = form(fields, {
  what: 'a relabelling rule',
  check(written, fault) {
    const compiled = compileRelabel(written)
    if (!isFaults(compiled)) return
    // An invalid action has no requirements to check.
    const ofAction = compiled.filter(({ field }) => field === 'action')
    for (const { field, message, hint } of ofAction.length > 0 ? ofAction : compiled)
      fault(field, `${message}; ${hint}`)
  },
})

/** Rules of `relabel_configs` or `metric_relabel_configs`. */
export const relabelRules = list(rule)

/** Compiled rules. They were checked with the configuration. */
export function rulesOf(written: readonly WrittenRule[]): RelabelRule[] {
  return written.flatMap(each => {
    const compiled = compileRelabel(each)
    return isFaults(compiled) ? [] : [compiled]
  })
}

function isFaults(compiled: RelabelRule | readonly RelabelFault[]): compiled is readonly RelabelFault[] {
  return Array.isArray(compiled)
}
