import { join } from 'node:path'
import protobuf from 'protobufjs'
import type { Signal } from '../../src/foundation/model/signal.ts'

const fixtures = join(import.meta.dirname, '../fixtures/otlp')
const prefix = 'opentelemetry.proto.collector'

const names: Record<Signal, { readonly scope: string; readonly message: string }> = {
  traces: { scope: 'trace.v1', message: 'Trace' },
  metrics: { scope: 'metrics.v1', message: 'Metrics' },
  logs: { scope: 'logs.v1', message: 'Logs' },
  profiles: { scope: 'profiles.v1development', message: 'Profiles' },
}

const root = new protobuf.Root()
root.resolvePath = (_origin, target) => join(fixtures, target)
root.loadSync(
  ['trace/v1/trace', 'metrics/v1/metrics', 'logs/v1/logs', 'profiles/v1development/profiles'].map(
    path => `opentelemetry/proto/collector/${path}_service.proto`,
  ),
)

/** The message type of an export request, from the definitions of OTLP 1.11. */
export function requestType(signal: Signal): protobuf.Type {
  const { scope, message } = names[signal]
  return root.lookupType(`${prefix}.${scope}.Export${message}ServiceRequest`)
}

/** The message type of the answer to an export request. */
export function responseType(signal: Signal): protobuf.Type {
  const { scope, message } = names[signal]
  return root.lookupType(`${prefix}.${scope}.Export${message}ServiceResponse`)
}

/**
 * Decodes an export request to plain objects that have only the fields that are on the wire: 64-bit integers as decimal
 * text, bytes as base64.
 */
export function decodeRequest(signal: Signal, body: Uint8Array): Record<string, unknown> {
  const type = requestType(signal)
  return type.toObject(type.decode(body), { longs: String, bytes: String })
}
