import { item, list } from '../../schema/collections.ts'
import { boolean, choice, regex, size, someText, text } from '../../schema/kinds.ts'
import { branch, type Infer, key } from '../../schema/tree.ts'
import { patternFault } from './pattern.ts'

/** Types that are built in, the first before the others where two find something in the same place. */
export const builtIn = [
  'private_key',
  'url_credentials',
  'jwt',
  'auth_header',
  'api_key',
  'password',
  'email',
  'credit_card',
  'iban',
  'ssn',
  'phone',
  'ipv6',
  'ipv4',
] as const

export type RuleType = (typeof builtIn)[number] | 'regex'

/**
 * What is looked for where no rules are given. Addresses of hosts are not: they are what telemetry of a network is about,
 * in `server.address` and `network.peer.address` of every span.
 */
export const byDefault = builtIn.filter(type => type !== 'ipv4' && type !== 'ipv6')

const modes = ['replace', 'hash', 'drop', 'count'] as const

/** Shorter keys can be guessed, and with them what was hashed. */
const shortestKey = 16

/** What stands in place of personal data; longer than this it would be more than what it stands for. */
const replacementText = text({ expects: 'at most 256 characters', pattern: /^.{0,256}$/s })

const piiRule = item(
  branch('A rule of redaction.', {
    name: key(someText, '', 'Name of the rule, in counters.', { required: true }),
    type: key(
      choice([
        'email',
        'phone',
        'ssn',
        'credit_card',
        'ipv4',
        'ipv6',
        'iban',
        'jwt',
        'api_key',
        'password',
        'private_key',
        'url_credentials',
        'auth_header',
        'regex',
      ]),
      'regex',
      'What to look for.',
      { required: true },
    ),
    pattern: key(regex, '', 'Regular expression for type `regex`.'),
    enabled: key(boolean, true, 'Applies the rule.'),
    mode: key(choice(['', ...modes]), '', 'What happens to what this rule finds; empty as for all.'),
    replacement: key(replacementText, '', 'What stands in place of what this rule finds; empty as for all.'),
  }),
  {
    fault(rule) {
      if (rule.type === 'regex' && rule.pattern === '') return 'a rule of type "regex" needs "pattern"'
      if (rule.type !== 'regex' && rule.pattern !== '')
        return `a rule of type "${rule.type}" takes no "pattern"`
      const fault = rule.type === 'regex' ? patternFault(rule.pattern) : ''
      return fault === '' ? undefined : `the pattern cannot be used: ${fault}`
    },
  },
)

export const redaction = branch('Redaction of personal data.', {
  enabled: key(boolean, false, 'Redacts personal data.'),
  scan_log_bodies: key(boolean, true, 'Looks into log bodies.'),
  scan_span_names: key(boolean, false, 'Looks into span names.'),
  replacement: key(replacementText, '[REDACTED]', 'What stands in place of personal data in mode `replace`.'),
  mode: key(
    choice(modes),
    'replace',
    'What happens to personal data: replaced, hashed with a key, dropped with its attribute, or only counted.',
  ),
  hash_key: key(
    text({
      expects: `at least ${shortestKey} characters`,
      valid: secret => secret === '' || secret.length >= shortestKey,
    }),
    '',
    'Key of mode `hash`; the same key gives the same hashes on every host. Empty for one of this installation.',
    { secret: true },
  ),
  max_scan_bytes: key(
    size({ min: 1024, max: 1_048_576 }),
    65_536,
    'How much of one value is looked into. What is beyond is replaced by `[TRUNCATED-UNSCANNED]`.',
  ),
  allowed_attributes: key(list(someText), [], 'Attributes that are not looked into.'),
  rules: key(
    list(piiRule),
    [],
    'What counts as personal data; empty for all built-in types but `ipv4` and `ipv6`.',
  ),
})

export type RedactionConfig = Infer<typeof redaction>

/** What the processor is made of. */
export interface RedactSettings {
  readonly pii_redaction: RedactionConfig
}
