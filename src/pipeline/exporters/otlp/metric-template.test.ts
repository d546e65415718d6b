import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeRequest } from '../../../../test/helpers/otlp-proto.ts'
import { placed, readMetric, withoutZeros } from '../../../../test/helpers/placed-metric.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { Attributes } from '../../../foundation/model/attributes.ts'
import type { Histogram, Metric } from '../../../foundation/model/metric.ts'
import { resource, type Scope } from '../../../foundation/model/resource.ts'
import { metricEncoding } from './encode-metric.ts'
import { metricTemplate } from './metric-template.ts'
import { RequestBuilder } from './request.ts'

const shop = resource({ 'service.name': 'shop' })
const scope: Scope = { name: 'svc/test', version: '1' }
const builder = new RequestBuilder(metricEncoding)
const sentUs = 1.75e15 + 0.25

function encoded(metric: Metric): Uint8Array {
  builder.add(shop, scope, metric)
  return builder.take()[0]!.body
}

function request(bytes: Uint8Array, points: number): Uint8Array {
  builder.addEncoded(shop, scope, bytes, points)
  const [batch] = builder.take()
  assert.equal(batch!.items, points)
  return batch!.body
}

test('a template with its numbers is the encoded metric', () => {
  fc.assert(
    fc.property(readMetric, readMetric, (one, other) => {
      const { placed: shape, values, wanted } = placed(one, sentUs)
      const template = metricTemplate(shape)!
      assert.equal(template.points, one.points.length)
      const filled = template.fill(values, sentUs)!
      assert.equal(filled.length, template.sizeBytes)
      const got = request(filled, template.points)
      assert.deepEqual(
        withoutZeros(decodeRequest('metrics', got)),
        withoutZeros(decodeRequest('metrics', encoded(wanted))),
      )
      const hasZero = wanted.points.some(
        point =>
          ('count' in point && point.count === 0) ||
          ('values' in point && [point.sum, ...(point.values as number[])].includes(0)),
      )
      if (!hasZero) assert.deepEqual(Buffer.from(got), Buffer.from(encoded(wanted)))
      // What was filled before, and what other templates hold, leaves no trace.
      metricTemplate(placed(other, 1).placed)?.fill(values.toReversed(), 1)
      template.fill(values.toReversed(), 1)
      assert.deepEqual(request(template.fill(values, sentUs)!, template.points), got)
    }),
    { numRuns: soak ? 100_000 : 3000 },
  )
})

const point = { attributes: Attributes.of({ path: '/' }), startUs: 0, timeUs: 0 }
const histogram: Histogram = {
  kind: 'histogram',
  name: 'h',
  description: '',
  unit: 's',
  bounds: [1, 2],
  points: [{ ...point, count: 4, sum: 3, buckets: [0, 1, 2] }],
}

test('a histogram that contradicts itself is not filled', () => {
  const template = metricTemplate(histogram)!
  const check = (fits: boolean, ...values: number[]) =>
    assert.equal(template.fill(Float64Array.from(values), 1) !== undefined, fits, values.join())
  // Three cumulative buckets, the sum, the count.
  check(true, 1, 2, 3, 0.5, 3)
  check(true, 0, 0, 0, Number.NaN, 0)
  check(true, 1, 2, 2 ** 53, 0.5, 2 ** 53)
  check(false, 1, 2, 3, 0.5, 4)
  check(false, 2, 1, 3, 0.5, 3)
  check(false, -1, 2, 3, 0.5, 3)
  check(false, 0.5, 2.5, 3, 0.5, 3)
  check(false, 1, 1.5, 3, 0.5, 3)
  check(false, 1, Number.NaN, 3, 0.5, 3)
  check(false, 1, 2, Infinity, 0.5, Infinity)
  check(false, 1, 2, 2 ** 54, 0.5, 2 ** 54)
  check(false, 1, 2, 3)
  check(true, 1, 2, 3, Infinity, 3)
})

test('the place of the last bucket may be that of the count', () => {
  const shared = { ...histogram, points: [{ ...histogram.points[0]!, count: 2, sum: undefined }] }
  const template = metricTemplate(shared)!
  const got = decodeRequest('metrics', request(template.fill(Float64Array.of(1, 2, 3), 1)!, 1))
  const wanted = { ...shared, points: [{ ...shared.points[0]!, timeUs: 1, count: 3, buckets: [1, 1, 1] }] }
  assert.deepEqual(got, decodeRequest('metrics', encoded(wanted)))
})

test('what is no matter of places alone has no template', () => {
  const described = { name: 'm', description: '', unit: '' }
  const value = { ...point, value: 0 }
  const check = (metric: Metric) => assert.equal(metricTemplate(metric), undefined)
  check({ ...described, kind: 'gauge', points: [] })
  check({ ...described, kind: 'gauge', points: [value, { ...value, noValue: true }] })
  const id = new Uint8Array(0)
  const exemplar = { timeUs: 0, value: 1, traceId: id, spanId: id, attributes: new Attributes() }
  check({ ...described, kind: 'gauge', points: [{ ...value, exemplars: [exemplar] }] })
  check({ ...described, kind: 'sum', integer: true, monotonic: true, points: [value] })
  const positive = { offset: 0, counts: [] }
  const exponential = { ...point, count: 0, sum: 0, scale: 0, zeroCount: 0, positive }
  check({ ...described, kind: 'exponential_histogram', points: [exponential] })
})
