import { list, map } from '../schema/collections.ts'
import { boolean, choice, duration, integer, number, size, someText } from '../schema/kinds.ts'
import { branch, type Infer, key } from '../schema/tree.ts'

const day = 86_400_000
const perSecond = integer({ min: 1, max: 1_000_000_000 })

export const limits = branch('Bounds that protect the receiver.', {
  cardinality: branch('Number of metric series.', {
    enabled: key(boolean, true, 'Bounds the number of series.'),
    default_max_series: key(integer({ min: 1, max: 100_000_000 }), 10_000, 'Most series of one metric.'),
    overrides: key(
      map(integer({ min: 1, max: 100_000_000 })),
      {},
      'Most series of single metrics, by name; they win over `default_max_series`.',
    ),
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
  }),
  rate: branch('Items per second.', {
    enabled: key(boolean, false, 'Bounds the rate.'),
    metrics_per_second: key(perSecond, 100_000, 'Most data points per second.'),
    traces_per_second: key(perSecond, 50_000, 'Most spans per second.'),
    logs_per_second: key(perSecond, 200_000, 'Most log records per second.'),
    burst: key(number({ min: 1, max: 100 }), 2, 'How many seconds’ worth may come at once.'),
  }),
  attributes: branch('Number and length of attributes, and the length of log bodies.', {
    enabled: key(boolean, true, 'Bounds attributes.'),
    max_resource_attributes: key(integer({ min: 1, max: 10_000 }), 128, 'Most attributes of a resource.'),
    max_attributes: key(integer({ min: 1, max: 10_000 }), 128, 'Most attributes of an item.'),
    max_attribute_value_size: key(integer({ min: 1, max: 1_048_576 }), 4096, 'Longest value, in bytes.'),
    max_attribute_key_size: key(integer({ min: 1, max: 65_536 }), 256, 'Longest key, in bytes.'),
    max_body_size: key(size({ min: 1, max: 64 * 1024 * 1024 }), 256 * 1024, 'Longest log body.'),
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

/** What the processors of limits are made of. */
export interface LimitSettings {
  readonly limits: Infer<typeof limits>
}
