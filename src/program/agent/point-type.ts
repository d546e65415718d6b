import type { Attributes } from '../../foundation/model/attributes.ts'
import { overflowAttribute } from '../../foundation/model/metric-declaration.ts'
import type { SignalTypeName } from '../../foundation/model/signal-types.ts'
import { signalTypeOf } from '../../signals/traces/protocols/signal-types.ts'

/** Metrics of one kind of call, by the first word of their names. */
const byArea: ReadonlyMap<string, SignalTypeName> = new Map([
  ['http', 'http'],
  ['rpc', 'grpc'],
  ['dns', 'dns'],
])

/**
 * `signal_type` of a point of a request metric, as for its spans. A point that stands for several systems, for lack of
 * room, is `overflow`.
 */
export function pointType(metric: string, point: Attributes): SignalTypeName {
  const type = ofMetric(metric)
  if (type !== undefined) return type
  const system = point.get('db.system.name') ?? point.get('messaging.system')
  if (system !== undefined) return signalTypeOf(String(system))
  return point.get(overflowAttribute) === true ? 'overflow' : 'unknown'
}

/** Cached by metric name: there are few, and each point needs it. */
const known = new Map<string, SignalTypeName | undefined>()

function ofMetric(metric: string): SignalTypeName | undefined {
  if (!known.has(metric)) known.set(metric, byArea.get(metric.slice(0, metric.indexOf('.'))))
  return known.get(metric)
}
