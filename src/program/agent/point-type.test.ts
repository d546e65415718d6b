import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kernelOperation } from '../../../test/helpers/kernel-operation.ts'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import { type SignalType, signalTypes } from '../../foundation/model/signal-types.ts'
import { durations } from '../../signals/traces/protocols/durations.ts'
import { protocols } from '../../signals/traces/protocols/index.ts'
import { pointType } from './point-type.ts'

const all: readonly SignalType[] = signalTypes
const named = new Set(all.filter(({ signals }) => signals.includes('metrics')).map(({ type }) => type))

test('points of request metrics are of the type that the spans of the same calls have', () => {
  let counted = 0
  for (const unit of protocols) {
    const operation = kernelOperation({ protocol: unit.name, peerAddress: '10.0.0.2', peerPort: 4000 })
    const { call } = operation
    unit.create({ route: () => '' }).fillCall?.(operation)
    if (call.duration === undefined) continue
    counted++
    assert.equal(pointType(call.duration.name, call.dimensions), call.signalType, unit.name)
    assert.ok(named.has(call.signalType), `${unit.name} is in the table`)
  }
  assert.ok(counted >= 4)
})

test('every metric that a protocol fills has a type, whatever its point', () => {
  const check = (metric: string, attributes: Record<string, AttributeValue>, want: string) => {
    assert.equal(pointType(metric, Attributes.of(attributes)), want)
    assert.ok(named.has(want), want)
  }
  check('http.server.request.duration', { 'otel.metric.overflow': true }, 'http')
  check('rpc.client.call.duration', { 'rpc.system.name': 'grpc' }, 'grpc')
  check('db.client.operation.duration', { 'db.system.name': 'mariadb' }, 'sql')
  check('db.client.operation.duration', { 'db.system.name': 'mongodb' }, 'mongodb')
  check('db.client.operation.duration', { 'otel.metric.overflow': true }, 'overflow')
  for (const [system, type] of [
    ['kafka', 'kafka'],
    ['rabbitmq', 'amqp'],
    ['mqtt', 'mqtt'],
    ['nats', 'nats'],
  ] as const)
    check('messaging.process.duration', { 'messaging.system': system }, type)
  check('messaging.client.operation.duration', { 'otel.metric.overflow': true }, 'overflow')
  for (const { name } of durations)
    assert.ok(named.has(pointType(name, Attributes.of({ 'otel.metric.overflow': true }))), name)
})
