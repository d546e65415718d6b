import type { SignalTypeName } from '../../../foundation/model/signal-types.ts'

/** Of what speaks no SQL. */
const bySystem: ReadonlyMap<string, SignalTypeName> = new Map([
  ['redis', 'redis'],
  ['memcached', 'memcached'],
  ['mongodb', 'mongodb'],
  ['kafka', 'kafka'],
  ['rabbitmq', 'amqp'],
  ['mqtt', 'mqtt'],
  ['nats', 'nats'],
])

/** `signal_type` of calls to a database or broker, by what the conventions call the system. */
export function signalTypeOf(system: string): SignalTypeName {
  return bySystem.get(system) ?? 'sql'
}
