// Security events as log records: a library for detectors. The agent itself emits none.

import type { AttributeValue } from './attributes.ts'
import type { LogRecord } from './log.ts'

type Kind = 'string' | 'strings' | 'integer' | 'boolean'

/** `required`: mandatory attributes. The others are set if known. */
interface EventType {
  readonly severities: readonly Severity[]
  readonly attributes: Readonly<Record<string, Kind>>
  readonly required: readonly string[]
}

/** Severities as `security.severity` has them: SeverityNumber and SeverityText of the record. */
export const securitySeverities = {
  info: { number: 9, text: 'INFO' },
  warning: { number: 13, text: 'WARNING' },
  critical: { number: 21, text: 'CRITICAL' },
} as const
type Severity = keyof typeof securitySeverities

/** Values of `security.event_type`, with their allowed severities and specific attributes. */
export const securityEventTypes = {
  process_exec: {
    severities: ['info', 'warning'],
    attributes: {
      'process.pid': 'integer',
      'process.ppid': 'integer',
      'process.executable.path': 'string',
      'process.command_line': 'string',
      'process.owner': 'string',
      'process.cwd': 'string',
      'k8s.pod.name': 'string',
    },
    required: ['process.pid', 'process.executable.path'],
  },
  privilege_escalation: {
    severities: ['warning', 'critical'],
    attributes: {
      'syscall.name': 'string',
      'syscall.args': 'strings',
      'process.pid': 'integer',
      'process.executable.path': 'string',
      'process.owner': 'string',
      'process.owner.uid': 'integer',
      'process.target.uid': 'integer',
    },
    required: ['syscall.name', 'process.pid'],
  },
  kernel_module: {
    severities: ['critical'],
    attributes: {
      'syscall.name': 'string',
      'module.name': 'string',
      'module.path': 'string',
      'process.pid': 'integer',
      'process.executable.path': 'string',
    },
    required: ['syscall.name', 'process.pid'],
  },
  file_integrity: {
    severities: ['warning'],
    attributes: {
      'file.path': 'string',
      'file.event': 'string',
      'file.owner': 'string',
      'file.permissions': 'string',
      'process.pid': 'integer',
      'process.executable.path': 'string',
      'process.owner': 'string',
    },
    required: ['file.path', 'file.event'],
  },
  container_escape: {
    severities: ['critical'],
    attributes: {
      'escape.type': 'string',
      'escape.namespace': 'string',
      'container.id': 'string',
      'container.name': 'string',
      'k8s.pod.name': 'string',
      'process.pid': 'integer',
    },
    required: ['escape.type', 'process.pid'],
  },
  privileged_operation: {
    severities: ['warning'],
    attributes: {
      'syscall.name': 'string',
      'mount.source': 'string',
      'mount.target': 'string',
      'container.id': 'string',
      'container.privileged': 'boolean',
    },
    required: ['syscall.name'],
  },
} as const satisfies Readonly<Record<string, EventType>>

export type SecurityEventType = keyof typeof securityEventTypes

/** System calls that such events cover. */
export const auditedSyscalls: readonly string[] = [
  'execve',
  'execveat',
  'setuid',
  'setgid',
  'ptrace',
  'init_module',
  'finit_module',
  'mount',
  'setns',
]

/** Counters of such events, without the agent's metric namespace. */
export const securityMetrics = [
  { name: 'security_events_total', help: 'Security events.', labels: ['event_type', 'severity'] },
  { name: 'file_integrity_violations_total', help: 'File integrity violations.', labels: ['path'] },
  { name: 'container_escape_attempts_total', help: 'Container escape attempts.', labels: ['escape_type'] },
] as const

interface Values {
  readonly string: string
  readonly strings: readonly string[]
  readonly integer: number
  readonly boolean: boolean
}
type Table = typeof securityEventTypes
type AllOf<T extends SecurityEventType> = {
  readonly [K in keyof Table[T]['attributes']]: Table[T]['attributes'][K] extends Kind
    ? Values[Table[T]['attributes'][K]]
    : never
}
type RequiredOf<T extends SecurityEventType> = Extract<Table[T]['required'][number], keyof AllOf<T>>

export interface SecurityEvent<T extends SecurityEventType = SecurityEventType> {
  readonly type: T
  readonly severity: Table[T]['severities'][number]
  /** Microseconds since the Unix epoch. */
  readonly timeUs: number
  /** What happened, for people. */
  readonly body: string
  readonly attributes: Partial<AllOf<T>> & Pick<AllOf<T>, RequiredOf<T>>
  /** 32 and 16 lower-case hexadecimal digits of the enclosing span. */
  readonly traceId?: string | undefined
  readonly spanId?: string | undefined
}

/** Fills a record, replacing its previous contents. Throws a `TypeError` that lists all faults of the event. */
export function fillSecurityRecord<T extends SecurityEventType>(
  event: SecurityEvent<T>,
  record: LogRecord,
): void {
  const faults = securityEventFaults(event)
  if (faults.length > 0)
    throw new TypeError(`cannot record the security event ${String(event.type)}: ${faults.join('; ')}`)
  const { type, severity, timeUs, body, traceId, spanId } = event
  const { number, text } = securitySeverities[severity]
  record.timeUs = timeUs
  record.observedUs = timeUs
  record.severity = number
  record.severityText = text
  record.body = body
  record.eventName = ''
  record.flags = 0
  record.droppedAttributes = 0
  fillBytes(record.traceId, traceId)
  fillBytes(record.spanId, spanId)
  const { attributes } = record
  attributes.clear()
  attributes.add('security.event_type', type)
  attributes.add('security.severity', severity)
  // In the order of the table.
  const given: Readonly<Record<string, AttributeValue | undefined>> = event.attributes
  for (const key of Object.keys(securityEventTypes[type].attributes)) {
    const value = given[key]
    if (value !== undefined) attributes.add(key, value)
  }
  if (traceId !== undefined) attributes.add('trace_id', traceId)
  if (spanId !== undefined) attributes.add('span_id', spanId)
}

/** Lists the faults of an event from any source, in a few words each; empty: `fillSecurityRecord` accepts it. */
export function securityEventFaults(event: SecurityEvent): string[] {
  // The event may come from untyped code.
  const given: { readonly [K in keyof SecurityEvent]: unknown } = event
  const { type, severity, timeUs, body, attributes, traceId, spanId } = given
  if (typeof type !== 'string' || !Object.hasOwn(securityEventTypes, type))
    return [`type must be one of ${Object.keys(securityEventTypes).join(', ')}`]
  const table: EventType = securityEventTypes[type as SecurityEventType]
  const faults: string[] = []
  if (!table.severities.includes(severity as Severity))
    faults.push(`severity must be ${table.severities.join(' or ')}`)
  if (typeof timeUs !== 'number' || !Number.isFinite(timeUs) || timeUs <= 0)
    faults.push('timeUs must be microseconds since 1970')
  if (typeof body !== 'string' || body === '') faults.push('body must describe what happened')
  if (traceId !== undefined && !isId(traceId, 32))
    faults.push('traceId must be 32 hexadecimal digits in lower case, not all of them 0')
  if (spanId !== undefined && !isId(spanId, 16))
    faults.push('spanId must be 16 hexadecimal digits in lower case, not all of them 0')
  if (spanId !== undefined && traceId === undefined) faults.push('spanId needs a traceId')
  if (typeof attributes !== 'object' || attributes === null) faults.push('attributes must be an object')
  else addAttributeFaults(table, attributes as Readonly<Record<string, unknown>>, faults)
  return faults
}

function addAttributeFaults(
  { attributes, required }: EventType,
  given: Readonly<Record<string, unknown>>,
  faults: string[],
): void {
  for (const key of required) if (given[key] === undefined) faults.push(`${key} is missing`)
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(attributes, key)) faults.push(`${key} is not an attribute of this event`)
    else if (given[key] !== undefined && !matchesKind[attributes[key]!](given[key]))
      faults.push(`${key} must be ${kindNames[attributes[key]!]}`)
  }
}

/** Numbers are process and user ids. */
const matchesKind: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  string: value => typeof value === 'string',
  strings: value => Array.isArray(value) && value.every(part => typeof part === 'string'),
  integer: value => Number.isSafeInteger(value) && (value as number) >= 0,
  boolean: value => typeof value === 'boolean',
}
const kindNames: Readonly<Record<Kind, string>> = {
  string: 'a string',
  strings: 'an array of strings',
  integer: 'a whole number, 0 or more',
  boolean: 'true or false',
}

function isId(text: unknown, digits: number): boolean {
  return typeof text === 'string' && text.length === digits && /^[0-9a-f]+$/.test(text) && /[^0]/.test(text)
}

function fillBytes(bytes: Uint8Array, hex: string | undefined): void {
  for (let i = 0; i < bytes.length; i++)
    bytes[i] = hex === undefined ? 0 : Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16)
}
