import { fieldKey, WireType, type Writer } from '../../../foundation/lib/protobuf.ts'
import type { LogRecord } from '../../../foundation/model/log.ts'
import { encodeAttributes, encodeId, encodeValue } from './encode-attributes.ts'
import type { Encoding } from './request.ts'

const logRecords = fieldKey(2, WireType.bytes)

const time = fieldKey(1, WireType.fixed64)
const severityNumber = fieldKey(2, WireType.varint)
const severityText = fieldKey(3, WireType.bytes)
const body = fieldKey(5, WireType.bytes)
const attributes = fieldKey(6, WireType.bytes)
const droppedAttributesCount = fieldKey(7, WireType.varint)
const flags = fieldKey(8, WireType.fixed32)
const traceId = fieldKey(9, WireType.bytes)
const spanId = fieldKey(10, WireType.bytes)
const observedTime = fieldKey(11, WireType.fixed64)
const eventName = fieldKey(12, WireType.bytes)

/** Estimated size of a record without its body. */
const usualRecord = 128

/** Encoding of log records (logs.proto). */
export const logEncoding: Encoding<LogRecord> = { signal: 'logs', encode: encodeLogRecord }

function encodeLogRecord(out: Writer, record: LogRecord): number {
  out.open(logRecords, record.body.length + usualRecord)
  if (record.timeUs !== 0) out.microsAsNanos(time, record.timeUs)
  if (record.severity !== 0) out.int(severityNumber, record.severity)
  if (record.severityText !== '') out.string(severityText, record.severityText)
  if (record.body !== '') encodeValue(out, body, record.body)
  encodeAttributes(out, attributes, record.attributes)
  if (record.droppedAttributes !== 0) out.int(droppedAttributesCount, record.droppedAttributes)
  if (record.flags !== 0) out.fixed32(flags, record.flags)
  encodeId(out, traceId, record.traceId)
  encodeId(out, spanId, record.spanId)
  if (record.observedUs !== 0) out.microsAsNanos(observedTime, record.observedUs)
  if (record.eventName !== '') out.string(eventName, record.eventName)
  out.close()
  return 1
}
