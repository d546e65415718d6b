import { Attributes } from '../../../../foundation/model/attributes.ts'
import type { Exemplar } from '../../../../foundation/model/metric.ts'
import type { LineExemplar } from '../exposition.ts'

const none = new Uint8Array()
const traceDigits = /^(?!0{32})[0-9a-fA-F]{32}$/
const spanDigits = /^(?!0{16})[0-9a-fA-F]{16}$/

/** Exemplar of a line in the form of OTLP. Invalid trace and span IDs stay attributes, so that nothing is lost. */
export function otlpExemplar({ labels, value, timeUs }: LineExemplar): Exemplar {
  const attributes = new Attributes()
  let traceId = none
  let spanId = none
  for (const [name, text] of labels) {
    if (name === 'trace_id' && traceDigits.test(text)) traceId = Buffer.from(text, 'hex')
    else if (name === 'span_id' && spanDigits.test(text)) spanId = Buffer.from(text, 'hex')
    else if (text !== '') attributes.add(name, text)
  }
  return { timeUs, value, traceId, spanId, attributes }
}
