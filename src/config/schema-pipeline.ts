import { item, list } from '../schema/collections.ts'
import {
  boolean,
  choice,
  duration,
  integer,
  number,
  path,
  regex,
  scalar,
  someText,
  text,
} from '../schema/kinds.ts'
import { branch, key } from '../schema/tree.ts'
import { exporting, transformMatch } from './schema-export.ts'

const day = 86_400_000
const perSecond = integer({ min: 1, max: 1_000_000_000 })
const later = { built: false } as const

const limits = branch('Bounds that protect the receiver.', {
  cardinality: branch(
    'Number of metric series.',
    {
      enabled: key(boolean, true, 'Bounds the number of series.'),
      default_max_series: key(integer({ min: 1, max: 100_000_000 }), 10_000, 'Most series of one metric.'),
      global_max_series: key(integer({ min: 1, max: 100_000_000 }), 100_000, 'Most series of all metrics.'),
      series_ttl: key(
        duration({ min: 1000, max: 365 * day }),
        3_600_000,
        'Time after which a silent series is forgotten.',
      ),
      on_limit: key(
        choice(['overflow', 'drop']),
        'overflow',
        'New series beyond the bound: added up in one overflow series, or dropped and counted.',
      ),
    },
    later,
  ),
  rate: branch(
    'Items per second.',
    {
      enabled: key(boolean, false, 'Bounds the rate.'),
      metrics_per_second: key(perSecond, 100_000, 'Most data points per second.'),
      traces_per_second: key(perSecond, 50_000, 'Most spans per second.'),
      logs_per_second: key(perSecond, 200_000, 'Most log records per second.'),
      burst: key(number({ min: 1, max: 100 }), 2, 'How many seconds’ worth may come at once.'),
    },
    later,
  ),
  attributes: branch(
    'Number and length of attributes.',
    {
      enabled: key(boolean, true, 'Bounds attributes.'),
      max_resource_attributes: key(integer({ min: 1, max: 10_000 }), 128, 'Most attributes of a resource.'),
      max_attributes: key(integer({ min: 1, max: 10_000 }), 128, 'Most attributes of an item.'),
      max_attribute_value_size: key(integer({ min: 1, max: 1_048_576 }), 4096, 'Longest value, in bytes.'),
      max_attribute_key_size: key(integer({ min: 1, max: 65_536 }), 256, 'Longest key, in bytes.'),
      protected_attributes: key(
        list(someText),
        [
          'service.name',
          'service.namespace',
          'service.instance.id',
          'host.name',
          'k8s.pod.name',
          'k8s.namespace.name',
        ],
        'Attributes that are never dropped.',
      ),
    },
    later,
  ),
})

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
    match: transformMatch,
    actions: key(list(action), [], 'What to do, in this order.', { required: true }),
  }),
)

export const pipeline = branch('What happens to telemetry between collection and export.', {
  enabled: key(
    boolean,
    true,
    'Applies limits, redaction and transformation; export goes on without it.',
    later,
  ),
  limits,
  pii_redaction: branch(
    'Redaction of personal data.',
    {
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
    },
    later,
  ),
  transform: branch(
    'Changes to telemetry by rules.',
    {
      enabled: key(boolean, false, 'Applies the rules.'),
      rules: key(list(transformRule), [], 'Rules, in this order.'),
    },
    later,
  ),
  export: exporting,
  operations: branch('Running the agent.', {
    hot_reload: branch('Taking up changes of the configuration without a restart.', {
      enabled: key(
        boolean,
        true,
        'Takes up changes: by looking at the files, on SIGHUP and by `POST /admin/reload`.',
      ),
      config_path: key(
        path,
        '',
        'File whose changes make the agent read its configuration again; empty for the configuration itself.',
      ),
      check_interval: key(
        duration({ min: 1000 }),
        30_000,
        'Time between two looks at the content of the configuration, of secret files and of TLS files.',
      ),
      enable_sighup: key(boolean, true, 'Takes up changes on SIGHUP.'),
    }),
    shutdown: branch('Ending the agent.', {
      timeout: key(
        duration(),
        30_000,
        'Longest time from the signal to the end; `shutdown_timeout` stands in where this is not set.',
      ),
      drain_timeout: key(
        duration({ min: 0 }),
        10_000,
        'Longest time to deliver what is queued; part of `timeout`.',
      ),
    }),
  }),
})
