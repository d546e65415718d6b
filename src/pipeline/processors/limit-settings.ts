import { list, map } from '../../foundation/schema/collections.ts'
import { boolean, choice, duration, integer, number, size, someText } from '../../foundation/schema/kinds.ts'
import { branch, type Infer, key } from '../../foundation/schema/tree.ts'

const day = 86_400_000
const perSecond = integer({ min: 1, max: 1_000_000_000 })

export const limits = branch('Limits that protect the receiver.', {
  cardinality: branch('Number of metric series.', {
    enabled: key(boolean, true, 'Limits the number of series.'),
    default_max_series: key(integer({ min: 1, max: 100_000_000 }), 10_000, 'Maximum series of one metric.'),
    overrides: key(
      map(integer({ min: 1, max: 100_000_000 })),
      {},
      'Maximum series of single metrics, by name; overrides `default_max_series`.',
    ),
    global_max_series: key(
      integer({ min: 1, max: 100_000_000 }),
      100_000,
      'Maximum series of all metrics together.',
    ),
    series_ttl: key(
      duration({ min: 1000, max: 365 * day }),
      3_600_000,
      'Time without data after which a series is forgotten.',
    ),
    on_limit: key(
      choice(['overflow', 'drop']),
      'overflow',
      'New series over the limit: summed in one overflow series, or dropped and counted.',
    ),
  }),
  rate: branch('Items per second.', {
    enabled: key(boolean, false, 'Limits the rate.'),
    metrics_per_second: key(perSecond, 100_000, 'Maximum data points per second.'),
    traces_per_second: key(perSecond, 50_000, 'Maximum spans per second.'),
    logs_per_second: key(perSecond, 200_000, 'Maximum log records per second.'),
    burst: key(number({ min: 1, max: 100 }), 2, 'Burst size, in seconds of the rate.'),
  }),
  attributes: branch('Number and length of attributes, and the length of log bodies.', {
    enabled: key(boolean, true, 'Limits attributes.'),
    max_resource_attributes: key(integer({ min: 1, max: 10_000 }), 128, 'Maximum attributes of a resource.'),
    max_attributes: key(integer({ min: 1, max: 10_000 }), 128, 'Maximum attributes of an item.'),
    max_attribute_value_size: key(
      integer({ min: 1, max: 1_048_576 }),
      4096,
      'Maximum length of a value, in bytes.',
    ),
    max_attribute_key_size: key(integer({ min: 1, max: 65_536 }), 256, 'Maximum length of a key, in bytes.'),
    max_body_size: key(size({ min: 1, max: 64 * 1024 * 1024 }), 256 * 1024, 'Maximum length of a log body.'),
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
  }),
})

/** Settings of the limiting processors. */
export interface LimitSettings {
  readonly limits: Infer<typeof limits>
}
