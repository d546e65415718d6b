import { item, list } from '../../schema/collections.ts'
import { boolean, choice, regex, someText, text } from '../../schema/kinds.ts'
import { branch, type Infer, key } from '../../schema/tree.ts'

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
        'regex',
      ]),
      'regex',
      'What to look for.',
      { required: true },
    ),
    pattern: key(regex, '', 'Regular expression for type `regex`.'),
    enabled: key(boolean, true, 'Applies the rule.'),
  }),
  {
    fault(rule) {
      if (rule.type === 'regex' && rule.pattern === '') return 'a rule of type "regex" needs "pattern"'
      return rule.type !== 'regex' && rule.pattern !== ''
        ? `a rule of type "${rule.type}" takes no "pattern"`
        : undefined
    },
  },
)

export const redaction = branch('Redaction of personal data.', {
  enabled: key(boolean, false, 'Redacts personal data.'),
  scan_log_bodies: key(boolean, true, 'Looks into log bodies.'),
  scan_span_names: key(boolean, false, 'Looks into span names.'),
  replacement: key(text(), '[REDACTED]', 'What stands in place of personal data in mode `replace`.'),
  mode: key(
    choice(['replace', 'hash', 'drop', 'count']),
    'replace',
    'What happens to personal data: replaced, hashed with a key, dropped with its attribute, or only counted.',
  ),
  allowed_attributes: key(list(someText), [], 'Attributes that are not looked into.'),
  rules: key(list(piiRule), [], 'What counts as personal data; empty for all built-in types.'),
})

/** What the processor is made of. */
export interface RedactSettings {
  readonly pii_redaction: Infer<typeof redaction>
}
