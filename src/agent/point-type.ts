import type { Attributes } from '../model/attributes.ts'
import { overflowAttribute } from '../model/metric-declaration.ts'
import { signalTypeOf } from '../protocols/signal-types.ts'

/** What metrics count that are of one kind of call, by the first word of their names. */
const byArea: ReadonlyMap<string, string> = new Map([
  ['http', 'http'],
  ['rpc', 'grpc'],
  ['dns', 'dns'],
])

/**
 * `signal_type` of a point of a request metric, as its spans have it. One that stands for calls to several systems, for
 * want of room, is `overflow`.
 */
export function pointType(metric: string, point: Attributes): string {
  const area = metric.slice(0, metric.indexOf('.'))
  const known = byArea.get(area)
  if (known !== undefined) return known
  const system = point.get('db.system.name') ?? point.get('messaging.system')
  if (system !== undefined) return signalTypeOf(String(system))
  return point.get(overflowAttribute) === true ? 'overflow' : area
}
