import { item, list, map } from '../../schema/collections.ts'
import { boolean, choice, regex, scalar, someText, text } from '../../schema/kinds.ts'
import { branch, type Infer, key } from '../../schema/tree.ts'

const match = branch('What an item must have for the rule to act; everything given must hold.', {
  signal_types: key(list(choice(['traces', 'metrics', 'logs', 'profiles'])), [], 'Signals; empty for all.'),
  resource_attributes: key(map(text()), {}, 'Resource attributes with their values.'),
  attributes: key(map(text()), {}, 'Attributes of the item with their values.'),
  metric_names: key(list(text()), [], 'Metric names.'),
  span_names: key(list(text()), [], 'Span names.'),
  log_bodies: key(list(text()), [], 'Regular expressions for log bodies.'),
})

const action = item(
  branch('An action on an item.', {
    type: key(
      choice(['set_attribute', 'delete_attribute', 'rename_attribute', 'hash_attribute', 'replace', 'drop']),
      'drop',
      'What to do; a key of the same name says how.',
      { required: true },
    ),
    set_attribute: branch('Sets an attribute.', {
      key: key(text(), '', 'Attribute.'),
      value: key(scalar, '', 'Its new value.'),
    }),
    delete_attribute: branch('Deletes an attribute.', { key: key(text(), '', 'Attribute.') }),
    rename_attribute: branch('Renames an attribute.', {
      from: key(text(), '', 'Old name.'),
      to: key(text(), '', 'New name.'),
    }),
    hash_attribute: branch('Replaces a value by its hash.', {
      key: key(text(), '', 'Attribute.'),
      algorithm: key(choice(['sha256', 'sha512', 'sha1', 'md5']), 'sha256', 'Hash function.'),
      salt: key(text(), '', 'Secret that goes into the hash.', { secret: true }),
    }),
    replace: branch('Replaces parts of a value.', {
      key: key(text(), '', 'Attribute.'),
      pattern: key(regex, '', 'Regular expression for what is replaced.'),
      replacement: key(text(), '', 'What stands there instead.'),
    }),
    drop: branch('Drops the item, counted.', {}),
  }),
  {
    fault(rule, given) {
      const needs: Readonly<Record<string, readonly string[]>> = {
        set_attribute: ['key', 'value'],
        delete_attribute: ['key'],
        rename_attribute: ['from', 'to'],
        hash_attribute: ['key'],
        replace: ['key', 'pattern'],
        drop: [],
      }
      const absent = needs[rule.type]!.find(name => !given.has(`${rule.type}.${name}`))
      if (absent !== undefined) return `an action of type "${rule.type}" needs "${rule.type}.${absent}"`
      const other = Object.keys(needs).find(name => name !== rule.type && given.has(name))
      return other === undefined ? undefined : `an action of type "${rule.type}" takes no "${other}"`
    },
  },
)

const transformRule = item(
  branch('A rule of transformation.', {
    name: key(someText, '', 'Name of the rule, in counters.', { required: true }),
    enabled: key(boolean, true, 'Applies the rule.'),
    match,
    actions: key(list(action), [], 'What to do, in this order.', { required: true }),
  }),
)

export const transformation = branch('Changes to telemetry by rules.', {
  enabled: key(boolean, false, 'Applies the rules.'),
  rules: key(list(transformRule), [], 'Rules, in this order.'),
})

/** What the processor is made of. */
export interface TransformSettings {
  readonly transform: Infer<typeof transformation>
}
