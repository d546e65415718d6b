import { item, list } from '../../../foundation/schema/collections.ts'
import { boolean, choice, regex, size, someText, text } from '../../../foundation/schema/kinds.ts'
import { branch, type Infer, key } from '../../../foundation/schema/tree.ts'
import { patternFault } from './pattern.ts'

/** Built-in types, by precedence if two match in the same place. */
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
 * Types used without configured rules. IP addresses are left out: they are essential in network telemetry, in
 * `server.address` and `network.peer.address` of every span.
 */
export const byDefault = builtIn.filter(type => type !== 'ipv4' && type !== 'ipv6')

const modes = ['replace', 'hash', 'drop', 'count'] as const

/** Shorter keys can be guessed, and the hashed values with them. */
const shortestKey = 16

/** Replacement of personal data; a longer one would exceed most originals. */
const replacementText = text({ expects: 'at most 256 characters', pattern: /^.{0,256}$/s })

const piiRule = item(
  branch('A redaction rule.', {
    name: key(someText, '', 'Name of the rule in counters.', { required: true }),
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
      'Type of data to find.',
      { required: true },
    ),
    pattern: key(regex, '', 'Regular expression for type `regex`.'),
    enabled: key(boolean, true, 'Enables the rule.'),
    mode: key(choice(['', ...modes]), '', 'Mode for matches of this rule; empty for the common `mode`.'),
    replacement: key(
      replacementText,
      '',
      'Replacement for matches of this rule; empty for the common `replacement`.',
    ),
  }),
  {
    fault(rule) {
      if (rule.type === 'regex' && rule.pattern === '') return 'a rule of type "regex" needs "pattern"'
      if (rule.type !== 'regex' && rule.pattern !== '')
        return `a rule of type "${rule.type}" does not allow "pattern"`
      const fault = rule.type === 'regex' ? patternFault(rule.pattern) : ''
      return fault === '' ? undefined : `invalid pattern: ${fault}`
    },
  },
)

export const redaction = branch('Redaction of personal data.', {
  enabled: key(boolean, false, 'Redacts personal data.'),
  scan_log_bodies: key(boolean, true, 'Scans log bodies.'),
  scan_span_names: key(boolean, false, 'Scans span names.'),
  replacement: key(replacementText, '[REDACTED]', 'Replacement for personal data in mode `replace`.'),
  mode: key(
    choice(modes),
    'replace',
    'Action on personal data: replace, hash with a key, drop its attribute, or only count.',
  ),
  hash_key: key(
    text({
      expects: `at least ${shortestKey} characters`,
      valid: secret => secret === '' || secret.length >= shortestKey,
    }),
    '',
    'Key of mode `hash`; the same key gives the same hashes on every host. Empty for a key of this installation.',
    { secret: true },
  ),
  max_scan_bytes: key(
    size({ min: 1024, max: 1_048_576 }),
    65_536,
    'Bytes of one value that are scanned. The rest is replaced by `[TRUNCATED-UNSCANNED]`.',
  ),
  allowed_attributes: key(list(someText), [], 'Attributes that are not scanned.'),
  rules: key(
    list(piiRule),
    [],
    'Rules that define personal data; empty for all built-in types except `ipv4` and `ipv6`.',
  ),
})

export type RedactionConfig = Infer<typeof redaction>

/** Settings of the processor. */
export interface RedactSettings {
  readonly pii_redaction: RedactionConfig
}
