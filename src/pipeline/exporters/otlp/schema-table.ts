import { WireType } from '../../../foundation/lib/protobuf.ts'
import type { Signal } from '../../../foundation/model/signal.ts'

/** Types of fields: those of Protocol Buffers, `enum`, identifiers by their length in bytes, and messages. */
export type FieldType =
  | 'string'
  | 'bytes'
  | 'bool'
  | 'enum'
  | 'int32'
  | 'uint32'
  | 'sint32'
  | 'int64'
  | 'uint64'
  | 'fixed32'
  | 'fixed64'
  | 'sfixed64'
  | 'double'
  | 'id8'
  | 'id16'
  | 'message'

/** Wire types of numbers; all other types are length-delimited. */
export const wireTypes: Readonly<Partial<Record<FieldType, WireType>>> = {
  bool: WireType.varint,
  enum: WireType.varint,
  int32: WireType.varint,
  uint32: WireType.varint,
  sint32: WireType.varint,
  int64: WireType.varint,
  uint64: WireType.varint,
  fixed32: WireType.fixed32,
  fixed64: WireType.fixed64,
  sfixed64: WireType.fixed64,
  double: WireType.fixed64,
}

export interface FieldSchema {
  readonly number: number
  /** Name in lower camel case, as in OTLP JSON. */
  readonly name: string
  readonly type: FieldType
  /** Message name of a field of type `message`. */
  readonly message: string
  readonly repeated: boolean
  /** Member of the message's oneof: the last one set replaces the others. */
  readonly oneOf: boolean
  /** Index in the message's list of fields. */
  readonly index: number
}

export interface MessageSchema {
  readonly name: string
  readonly fields: readonly FieldSchema[]
  readonly byNumber: readonly (FieldSchema | undefined)[]
}

/** Export request messages by signal. */
export const requestMessages: Readonly<Record<Signal, string>> = {
  traces: 'TraceRequest',
  metrics: 'MetricsRequest',
  logs: 'LogsRequest',
  profiles: 'ProfilesRequest',
}

/** The only recursive message. */
export const recursiveMessage = 'AnyValue'
/** Maximum nesting of values in arrays and maps. */
export const maxValueDepth = 32

const times = '2 startTimeUnixNano fixed64, 3 timeUnixNano fixed64'

/**
 * Messages of opentelemetry-proto 1.11, fields in the order of their definition: number, name, type. Message types
 * start with a capital, `[]` marks repeated fields, `|` members of a oneof.
 */
const definitions: Readonly<Record<string, string>> = {
  TraceRequest: '1 resourceSpans ResourceSpans[]',
  MetricsRequest: '1 resourceMetrics ResourceMetrics[]',
  LogsRequest: '1 resourceLogs ResourceLogs[]',
  ProfilesRequest: '1 resourceProfiles ResourceProfiles[], 2 dictionary ProfilesDictionary',

  AnyValue:
    '1 stringValue string|, 2 boolValue bool|, 3 intValue int64|, 4 doubleValue double|, 5 arrayValue ArrayValue|, ' +
    '6 kvlistValue KeyValueList|, 7 bytesValue bytes|, 8 stringValueStrindex int32|',
  ArrayValue: '1 values AnyValue[]',
  KeyValueList: '1 values KeyValue[]',
  KeyValue: '1 key string, 2 value AnyValue, 3 keyStrindex int32',
  InstrumentationScope:
    '1 name string, 2 version string, 3 attributes KeyValue[], 4 droppedAttributesCount uint32',
  EntityRef: '1 schemaUrl string, 2 type string, 3 idKeys string[], 4 descriptionKeys string[]',
  Resource: '1 attributes KeyValue[], 2 droppedAttributesCount uint32, 3 entityRefs EntityRef[]',

  ResourceSpans: '1 resource Resource, 2 scopeSpans ScopeSpans[], 3 schemaUrl string',
  ScopeSpans: '1 scope InstrumentationScope, 2 spans Span[], 3 schemaUrl string',
  Span:
    '1 traceId id16, 2 spanId id8, 3 traceState string, 4 parentSpanId id8, 16 flags fixed32, 5 name string, ' +
    '6 kind enum, 7 startTimeUnixNano fixed64, 8 endTimeUnixNano fixed64, 9 attributes KeyValue[], ' +
    '10 droppedAttributesCount uint32, 11 events Event[], 12 droppedEventsCount uint32, 13 links SpanLink[], ' +
    '14 droppedLinksCount uint32, 15 status Status',
  Event: '1 timeUnixNano fixed64, 2 name string, 3 attributes KeyValue[], 4 droppedAttributesCount uint32',
  SpanLink:
    '1 traceId id16, 2 spanId id8, 3 traceState string, 4 attributes KeyValue[], 5 droppedAttributesCount uint32, ' +
    '6 flags fixed32',
  Status: '2 message string, 3 code enum',

  ResourceMetrics: '1 resource Resource, 2 scopeMetrics ScopeMetrics[], 3 schemaUrl string',
  ScopeMetrics: '1 scope InstrumentationScope, 2 metrics Metric[], 3 schemaUrl string',
  Metric:
    '1 name string, 2 description string, 3 unit string, 5 gauge Gauge|, 7 sum Sum|, 9 histogram Histogram|, ' +
    '10 exponentialHistogram ExponentialHistogram|, 11 summary Summary|, 12 metadata KeyValue[]',
  Gauge: '1 dataPoints NumberDataPoint[]',
  Sum: '1 dataPoints NumberDataPoint[], 2 aggregationTemporality enum, 3 isMonotonic bool',
  Histogram: '1 dataPoints HistogramDataPoint[], 2 aggregationTemporality enum',
  ExponentialHistogram: '1 dataPoints ExponentialHistogramDataPoint[], 2 aggregationTemporality enum',
  Summary: '1 dataPoints SummaryDataPoint[]',
  NumberDataPoint:
    `7 attributes KeyValue[], ${times}, 4 asDouble double|, 6 asInt sfixed64|, 5 exemplars Exemplar[], ` +
    '8 flags uint32',
  HistogramDataPoint:
    `9 attributes KeyValue[], ${times}, 4 count fixed64, 5 sum double, 6 bucketCounts fixed64[], ` +
    '7 explicitBounds double[], 8 exemplars Exemplar[], 10 flags uint32, 11 min double, 12 max double',
  ExponentialHistogramDataPoint:
    `1 attributes KeyValue[], ${times}, 4 count fixed64, 5 sum double, 6 scale sint32, 7 zeroCount fixed64, ` +
    '8 positive Buckets, 9 negative Buckets, 10 flags uint32, 11 exemplars Exemplar[], 12 min double, ' +
    '13 max double, 14 zeroThreshold double',
  Buckets: '1 offset sint32, 2 bucketCounts uint64[]',
  SummaryDataPoint:
    `7 attributes KeyValue[], ${times}, 4 count fixed64, 5 sum double, 6 quantileValues ValueAtQuantile[], ` +
    '8 flags uint32',
  ValueAtQuantile: '1 quantile double, 2 value double',
  Exemplar:
    '7 filteredAttributes KeyValue[], 2 timeUnixNano fixed64, 3 asDouble double|, 6 asInt sfixed64|, ' +
    '4 spanId id8, 5 traceId id16',

  ResourceLogs: '1 resource Resource, 2 scopeLogs ScopeLogs[], 3 schemaUrl string',
  ScopeLogs: '1 scope InstrumentationScope, 2 logRecords LogRecord[], 3 schemaUrl string',
  LogRecord:
    '1 timeUnixNano fixed64, 11 observedTimeUnixNano fixed64, 2 severityNumber enum, 3 severityText string, ' +
    '5 body AnyValue, 6 attributes KeyValue[], 7 droppedAttributesCount uint32, 8 flags fixed32, 9 traceId id16, ' +
    '10 spanId id8, 12 eventName string',

  ResourceProfiles: '1 resource Resource, 2 scopeProfiles ScopeProfiles[], 3 schemaUrl string',
  ScopeProfiles: '1 scope InstrumentationScope, 2 profiles Profile[], 3 schemaUrl string',
  ProfilesDictionary:
    '1 mappingTable Mapping[], 2 locationTable Location[], 3 functionTable Function[], 4 linkTable ProfileLink[], ' +
    '5 stringTable string[], 6 attributeTable KeyValueAndUnit[], 7 stackTable Stack[]',
  Profile:
    '1 sampleType ValueType, 2 samples Sample[], 3 timeUnixNano fixed64, 4 durationNano uint64, ' +
    '5 periodType ValueType, 6 period int64, 7 profileId id16, 8 droppedAttributesCount uint32, ' +
    '9 originalPayloadFormat string, 10 originalPayload bytes, 11 attributeIndices int32[]',
  ProfileLink: '1 traceId id16, 2 spanId id8',
  ValueType: '1 typeStrindex int32, 2 unitStrindex int32',
  Sample:
    '1 stackIndex int32, 2 attributeIndices int32[], 3 linkIndex int32, 4 values int64[], ' +
    '5 timestampsUnixNano fixed64[]',
  Mapping:
    '1 memoryStart uint64, 2 memoryLimit uint64, 3 fileOffset uint64, 4 filenameStrindex int32, ' +
    '5 attributeIndices int32[]',
  Stack: '1 locationIndices int32[]',
  Location: '1 mappingIndex int32, 2 address uint64, 3 lines Line[], 4 attributeIndices int32[]',
  Line: '1 functionIndex int32, 2 line int64, 3 column int64',
  Function: '1 nameStrindex int32, 2 systemNameStrindex int32, 3 filenameStrindex int32, 4 startLine int64',
  KeyValueAndUnit: '1 keyStrindex int32, 2 value AnyValue, 3 unitStrindex int32',
}

const read = new Map<string, MessageSchema>()

/** Message by its name in this table. Parsed at its first use: most processes need none. */
export function messageSchema(name: string): MessageSchema {
  let message = read.get(name)
  if (message === undefined) {
    const fields = definitions[name]!.split(', ').map(fieldSchema)
    const byNumber: (FieldSchema | undefined)[] = []
    for (const field of fields) byNumber[field.number] = field
    message = { name, fields, byNumber }
    read.set(name, message)
  }
  return message
}

function fieldSchema(text: string, index: number): FieldSchema {
  const [number, name, marked] = text.split(' ') as [string, string, string]
  const type = marked.replace(/\W+$/, '')
  const isMessage = /^[A-Z]/.test(type)
  return {
    number: Number(number),
    name,
    type: isMessage ? 'message' : (type as FieldType),
    message: isMessage ? type : '',
    repeated: marked.endsWith('[]'),
    oneOf: marked.endsWith('|'),
    index,
  }
}
