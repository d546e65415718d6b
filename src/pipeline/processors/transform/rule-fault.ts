import { signalsFor } from './actions.ts'
import type { ActionSettings, RuleSettings } from './keys.ts'
import { itemKeys, matchFault, signalsOf } from './match.ts'

/** Types of actions that apply to resources. */
const onResource: readonly ActionSettings['type'][] = [
  'set_attribute',
  'delete_attribute',
  'rename_attribute',
  'copy_attribute',
  'keep_attributes',
  'hash_attribute',
  'truncate_attribute',
  'replace',
  'extract_attributes',
  'drop',
]

/** Contradiction in a rule; '' for none. */
export function ruleFault({ match, actions }: RuleSettings): string {
  const fault = matchFault(match)
  if (fault !== '') return fault
  const possible = signalsOf(match)
  for (const action of actions) {
    const own = signalsFor(action)
    const what = `an action of type "${action.type}"${action.type === 'extract_attributes' ? ' without a key' : ''}`
    if (action.on === 'resource') {
      if (own !== undefined || !onResource.includes(action.type))
        return `${what} cannot act on resources; delete "on"`
    } else if (own !== undefined && possible.some(signal => !own.includes(signal))) {
      return `${what} works only on ${own.join(' and ')}; add "signal_types: [${own.join(', ')}]" to "match"`
    }
  }
  const onResources = actions.filter(({ on }) => on === 'resource').length
  if (onResources === 0) return ''
  const [asked] = itemKeys(match)
  if (asked !== undefined)
    return `actions on the resource cannot depend on "${asked}" of an item; use only "signal_types" and "resource_attributes" in "match"`
  return onResources < actions.length
    ? 'the rule has actions on items and on resources; split it into two rules'
    : ''
}
