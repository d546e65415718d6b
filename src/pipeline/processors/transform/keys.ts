import { list, map } from '../../../foundation/schema/collections.ts'
import { choice, integer, number, regex, scalar, someText, text } from '../../../foundation/schema/kinds.ts'
import { branch, type Infer, key } from '../../../foundation/schema/tree.ts'
import { severity, textOrRegex } from './kinds.ts'

/** Conditions of a rule. */
export const matchKeys = branch('Conditions for the rule; all of them must match.', {
  signal_types: key(list(choice(['traces', 'metrics', 'logs', 'profiles'])), [], 'Signals; empty for all.'),
  resource_attributes: key(
    map(textOrRegex),
    {},
    'Resource attributes with their values: text, a regular expression between slashes, or `*` for any.',
  ),
  attributes: key(map(textOrRegex), {}, 'Attributes of the item with their values, in the same form.'),
  metric_names: key(
    list(textOrRegex),
    [],
    'Metric names, or regular expressions between slashes; one must match.',
  ),
  span_names: key(
    list(textOrRegex),
    [],
    'Span names, or regular expressions between slashes; one must match.',
  ),
  span_kinds: key(
    list(choice(['internal', 'server', 'client', 'producer', 'consumer'])),
    [],
    'Span kinds; empty for all.',
  ),
  span_status: key(choice(['any', 'unset', 'error']), 'any', 'Status of the span.'),
  log_bodies: key(list(regex), [], 'Regular expressions for log bodies; one must match.'),
  min_severity: key(severity, 0, 'Minimum severity of a log record, such as `warn` or 13; empty for any.'),
})
export type MatchSettings = Infer<typeof matchKeys>

const keyOf = (description: string) => key(someText, '', description)

/** Keys of an action. */
export const actionKeys = branch('An action on an item.', {
  type: key(
    choice([
      'set_attribute',
      'delete_attribute',
      'rename_attribute',
      'copy_attribute',
      'keep_attributes',
      'hash_attribute',
      'truncate_attribute',
      'replace',
      'replace_body',
      'extract_attributes',
      'set_severity',
      'sample',
      'drop',
    ]),
    'drop',
    'Type of action; the key of the same name has its settings.',
    { required: true },
  ),
  on: key(
    choice(['item', 'resource']),
    'item',
    'Target of the action: attributes of the item or of its resource.',
  ),
  set_attribute: branch('Sets an attribute.', {
    key: keyOf('Attribute.'),
    value: key(scalar, '', 'New value.'),
    mode: key(
      choice(['upsert', 'insert', 'update']),
      'upsert',
      '`insert` never changes an existing attribute, `update` never adds one.',
    ),
  }),
  delete_attribute: branch('Deletes attributes.', {
    key: keyOf('Attribute, or a regular expression between slashes.'),
  }),
  rename_attribute: branch('Renames an attribute.', { from: keyOf('Old name.'), to: keyOf('New name.') }),
  copy_attribute: branch('Copies an attribute.', {
    from: keyOf('Name of the original.'),
    to: keyOf('Name of the copy.'),
  }),
  keep_attributes: branch('Deletes all other attributes.', {
    keys: key(list(textOrRegex), [], 'Attributes that stay, or regular expressions between slashes.'),
  }),
  hash_attribute: branch('Replaces a value by its keyed hash.', {
    key: keyOf('Attribute.'),
    algorithm: key(choice(['sha256', 'sha512', 'sha1', 'md5']), 'sha256', 'Hash function.'),
    salt: key(text(), '', 'Key of the hash; empty for a secret of this installation.', { secret: true }),
  }),
  truncate_attribute: branch('Cuts a value.', {
    key: keyOf('Attribute.'),
    length: key(integer({ min: 0, max: 1_048_576 }), 0, 'Maximum length of a value, in bytes.'),
  }),
  replace: branch('Replaces parts of a value.', {
    key: keyOf('Attribute.'),
    pattern: key(regex, '', 'Regular expression for the text to replace.'),
    replacement: key(text(), '', 'Replacement; `$1` and `$<name>` are groups of the pattern.'),
  }),
  replace_body: branch('Replaces parts of a log body.', {
    pattern: key(regex, '', 'Regular expression for the text to replace.'),
    replacement: key(text(), '', 'Replacement; `$1` and `$<name>` are groups of the pattern.'),
  }),
  extract_attributes: branch('Creates attributes from the named groups of a pattern.', {
    key: key(text(), '', 'Attribute to search; empty for the log body.'),
    pattern: key(regex, '', 'Regular expression with groups such as `(?P<user>[a-z]+)`.'),
    prefix: key(text(), '', 'Prefix of the attribute names.'),
  }),
  set_severity: branch('Sets the severity of a log record.', {
    severity: key(severity, 0, 'Severity such as `warn`, or its number.'),
  }),
  sample: branch('Keeps a share of the traces, or of the log records, and drops the rest.', {
    ratio: key(number({ min: 0, max: 1 }), 1, 'Share to keep, from 0 to 1.'),
  }),
  drop: branch('Drops the item and counts it.', {}),
})
export type ActionSettings = Infer<typeof actionKeys>

/** Settings of a rule. */
export interface RuleSettings {
  readonly name: string
  readonly enabled: boolean
  readonly match: MatchSettings
  readonly actions: readonly ActionSettings[]
}
