import type { SignalTypeName } from '../../../foundation/model/signal-types.ts'

/** Systems without SQL. */
const bySystem: ReadonlyMap<string, SignalTypeName> = new Map([
  ['redis', 'redis'],
  ['memcached', 'memcached'],
  ['mongodb', 'mongodb'],
  ['kafka', 'kafka'],
  ['rabbitmq', 'amqp'],
  ['mqtt', 'mqtt'],
  ['nats', 'nats'],
])

/** `signal_type` of calls to a database or broker, by the system's name in the conventions. */
export function signalTypeOf(system: string): SignalTypeName {
  return bySystem.get(system) ?? 'sql'
}
