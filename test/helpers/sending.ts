// What tests of senders share.
import assert from 'node:assert/strict'
import { type Batch, SendError } from '../../src/foundation/model/batch.ts'
import { resource } from '../../src/foundation/model/resource.ts'
import { Span } from '../../src/foundation/model/span.ts'
import { traceEncoding } from '../../src/pipeline/exporters/otlp/encode-trace.ts'
import { RequestBuilder } from '../../src/pipeline/exporters/otlp/request.ts'

export const noTls = { caFile: '', certFile: '', keyFile: '', serverName: '', insecureSkipVerify: false }
/** Never raised. */
export const never = new AbortController().signal

/** A request of spans that are called `span 0` and so on. */
export function batchOf(spans: number): Batch {
  const builder = new RequestBuilder(traceEncoding)
  const host = resource({ 'host.name': 'test' })
  const scope = { name: 'svc', version: '1' }
  const span = new Span()
  for (let i = 0; i < spans; i++) {
    span.name = `span ${i}`
    builder.add(host, scope, span)
  }
  return builder.take()[0]!
}

/** What a sending that must fail fails with. */
export async function failure(sent: Promise<unknown>): Promise<SendError> {
  const error = await sent.then(
    () => assert.fail('the batch was sent'),
    error => error,
  )
  assert.ok(error instanceof SendError, String(error))
  return error
}
