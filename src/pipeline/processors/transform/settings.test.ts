import assert from 'node:assert/strict'
import test from 'node:test'
import { read } from '../../../../test/helpers/processor-stage.ts'
import { branchJson } from '../../../foundation/schema/collections.ts'
import { show } from '../../../foundation/schema/tree.ts'
import { transformation } from './settings.ts'

/** What is said of a rule, without its place. */
function check(rule: string, want: RegExp | ''): void {
  const { problems } = read(transformation, `rules: [${rule}]`)
  if (want === '') assert.equal(problems, '', rule)
  else {
    assert.match(problems, want)
    assert.match(problems, /^config\.yaml:1:\d+: rules/, 'it names the place')
  }
}

const acting = (action: string, match = '{}') => `{name: r, match: ${match}, actions: [${action}]}`

test('an action needs what belongs to its type, and takes nothing else', () => {
  const needs: Readonly<Record<string, string>> = {
    set_attribute: '{key: a, value: x}',
    delete_attribute: '{key: a}',
    rename_attribute: '{from: a, to: b}',
    copy_attribute: '{from: a, to: b}',
    keep_attributes: '{keys: [a]}',
    hash_attribute: '{key: a}',
    truncate_attribute: '{key: a, length: 5}',
    replace: '{key: a, pattern: x}',
    replace_body: '{pattern: x}',
    extract_attributes: '{pattern: (?P<x>y)}',
    set_severity: '{severity: warn}',
    sample: '{ratio: 0.5}',
  }
  for (const [type, how] of Object.entries(needs)) {
    const match = '{signal_types: [logs]}'
    check(acting(`{type: ${type}, ${type}: ${how}}`, match), '')
    check(acting(`{type: ${type}}`, match), new RegExp(`of type "${type}" needs "${type}\\.\\w+"`))
    check(
      acting(`{type: drop, ${type}: ${how}}`, match),
      new RegExp(`of type "drop" does not allow "${type}"`),
    )
  }
  check(acting('{type: drop}'), '')
  check(acting('{type: drop, drop: {}}'), '')
})

test('patterns and replacements are tried when they are read', () => {
  const replace = (how: string) => acting(`{type: replace, replace: ${how}}`)
  check(replace('{key: a, pattern: "("}'), /expected a regular expression/)
  check(replace('{key: a, pattern: x, replacement: $1}'), /group \$1 is not in the pattern/)
  check(
    acting('{type: replace_body, replace_body: {pattern: (x), replacement: $2}}', '{signal_types: [logs]}'),
    /invalid pattern in "replace_body": group \$2/,
  )
  const extract = (pattern: string) =>
    acting(`{type: extract_attributes, extract_attributes: {key: a, pattern: "${pattern}"}}`)
  check(extract('(x)'), /no named group, such as/)
  check(extract('(?P<n>x){3}'), /the group "n" is in a part repeated with/)
  check(extract('(?P<n>x{3})'), '')
  check(
    acting('{type: drop}', '{attributes: {a: "/(/"}}'),
    /between the slashes, found the text "\/\(\/": unterminated/,
  )
  check(acting('{type: drop}', '{span_names: ["/(?=x)/"]}'), /it uses lookaround/)
  check(acting('{type: drop}', '{log_bodies: ["["]}'), /expected a regular expression/)
})

test('a match that nothing can fulfil is refused', () => {
  const match = (keys: string, want: RegExp | '') => check(acting('{type: drop}', keys), want)
  match(
    '{metric_names: [a], span_names: [b]}',
    /"metric_names" matches only metrics and "span_names" only traces/,
  )
  match('{span_status: error, min_severity: warn}', /split it into two rules/)
  match(
    '{signal_types: [logs], span_kinds: [server]}',
    /"span_kinds" matches only traces, which "signal_types" excludes/,
  )
  match('{signal_types: [logs, traces], span_kinds: [server]}', '')
  match('{span_names: [a], span_kinds: [server], span_status: unset}', '')
  match('{span_kind: [server]}', /unknown key; did you mean "span_kinds"/)
  match('{attributes: {a: }}', /expected text, or a regular expression between slashes, found nothing/)
  match('{attributes: {a: [x]}}', /found a list/)
  match('{min_severity: warning}', /found the text "warning"; write "warn"/)
  match('{min_severity: 25}', /expected a severity such as "warn"/)
  match('{min_severity: warn5}', /expected a severity/)
})

test('an action on what an item has not is refused', () => {
  const set = '{type: set_severity, set_severity: {severity: warn}}'
  check(acting(set), /works only on logs; add "signal_types: \[logs\]" to "match"/)
  check(acting(set, '{signal_types: [logs, traces]}'), /works only on logs/)
  check(acting(set, '{min_severity: info}'), '')
  check(acting('{type: set_severity, set_severity: {severity: ""}}', '{signal_types: [logs]}'), /is empty/)
  const sample = '{type: sample, sample: {ratio: 0.1}}'
  check(acting(sample), /works only on traces and logs; add "signal_types: \[traces, logs\]"/)
  check(acting(sample, '{signal_types: [traces]}'), '')
  check(acting('{type: sample, sample: {ratio: 2}}', '{signal_types: [traces]}'), /a number from 0 to 1/)
  check(
    acting('{type: extract_attributes, extract_attributes: {pattern: (?P<a>b)}}', '{span_names: [a]}'),
    /"extract_attributes" without a key works only on logs/,
  )
})

test('an action on resources depends on resources only', () => {
  const on = '{type: delete_attribute, on: resource, delete_attribute: {key: a}}'
  check(acting(on), '')
  check(acting(on, '{signal_types: [logs], resource_attributes: {a: b}}'), '')
  check(acting(on, '{attributes: {a: b}}'), /cannot depend on "attributes" of an item/)
  check(acting(on, '{span_names: [a]}'), /cannot depend on "span_names"/)
  check(
    acting(`${on}, {type: drop}`),
    /the rule has actions on items and on resources; split it into two rules/,
  )
  check(
    acting('{type: sample, on: resource, sample: {ratio: 1}}', '{signal_types: [logs]}'),
    /"sample" cannot act on resources/,
  )
  check(
    acting('{type: extract_attributes, on: resource, extract_attributes: {pattern: (?P<a>b)}}'),
    /"extract_attributes" without a key cannot act on resources/,
  )
})

test('rules need names of their own', () => {
  check('{name: r, actions: []}, {name: s, actions: []}', '')
  check('{name: r, actions: []}, {name: r, actions: []}', /duplicate rule name "r"; give each rule its own/)
  check('{actions: []}', /the key "name" is missing/)
  check('{name: r}', /the key "actions" is missing/)
  check('{name: "", actions: []}', /text that is not empty/)
})

test('settings are shown as a file would hold them, without salts', () => {
  const { settings, problems } = read(
    transformation,
    'rules: [{name: r, match: {signal_types: [logs], min_severity: 18, attributes: {a: 5}}, actions: [{type: hash_attribute, hash_attribute: {key: k, salt: pepper}}]}]',
  )
  assert.equal(problems, '')
  const shown = show(transformation, settings, () => text => text) as { rules: Record<string, never>[] }
  const { match, actions } = shown.rules[0] as unknown as {
    match: object
    actions: { hash_attribute: object }[]
  }
  assert.deepEqual(match, {
    signal_types: ['logs'],
    resource_attributes: {},
    attributes: { a: '5' },
    metric_names: [],
    span_names: [],
    span_kinds: [],
    span_status: 'any',
    log_bodies: [],
    min_severity: 'error2',
  })
  assert.deepEqual(actions[0]!.hash_attribute, { key: 'k', algorithm: 'sha256', salt: '[REDACTED]' })
  assert.doesNotMatch(JSON.stringify(branchJson(transformation)), /undefined/)
})
