import { patternFault } from './pattern.ts'
import type { Rule, RuleCounts } from './redactor.ts'
import { byDefault, type RedactionConfig } from './settings.ts'

/**
 * Rules of a configuration, with the counts of the former ones. Throws an error with a reason if they contradict each
 * other.
 */
export function rulesOf(config: RedactionConfig, former?: ReadonlyMap<string, RuleCounts>): Rule[] {
  const counts = new Map<string, RuleCounts>()
  const countsOf = (name: string): RuleCounts => {
    const own = counts.get(name) ?? former?.get(name) ?? { redacted: 0, found: 0 }
    counts.set(name, own)
    return own
  }
  const { mode, replacement } = config
  if (config.rules.length === 0)
    return byDefault.map(type => ({
      name: type,
      type,
      pattern: '',
      mode,
      replacement,
      counts: countsOf(type),
    }))
  const enabled = config.rules.filter(rule => rule.enabled)
  for (const [i, { name, type, pattern }] of enabled.entries()) {
    const other = enabled.findIndex(rule => rule.type === type)
    if (type !== 'regex' && other < i)
      throw new Error(
        `cannot use rule "${name}": rule "${enabled[other]!.name}" is of type "${type}" too; delete one`,
      )
    const fault = type === 'regex' ? patternFault(pattern) : ''
    if (fault !== '') throw new Error(`cannot use the pattern of rule "${name}": ${fault}`)
  }
  return enabled.map(({ name, type, pattern, ...own }) => ({
    name,
    type,
    pattern,
    mode: own.mode || mode,
    replacement: own.replacement || replacement,
    counts: countsOf(name),
  }))
}
