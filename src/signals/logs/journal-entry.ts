import { utf8Text } from '../../foundation/lib/utf8-text.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import { clearRecord, type RecordParser } from './record-parser.ts'
import { syslogNames, syslogSeverity } from './severity.ts'
import { setSpanId, setTraceId } from './trace-context.ts'

/** An entry of `journalctl -o json`; values are strings, arrays of bytes, arrays of both, or null. */
type Entry = Readonly<Record<string, unknown>>

/** Fields that become attributes unchanged (systemd.journal-fields(7)); names without a convention are svc's own. */
const textAttributes: readonly (readonly [field: string, attribute: string])[] = [
  ['_COMM', 'process.executable.name'],
  ['_EXE', 'process.executable.path'],
  ['CODE_FILE', 'code.file.path'],
  ['CODE_FUNC', 'code.function.name'],
  ['SYSLOG_IDENTIFIER', 'svc.syslog.identifier'],
  ['_TRANSPORT', 'svc.journal.transport'],
]
/** Fields accepted only from root: any program may write them; Docker and Podman do so as root. */
const rootAttributes: readonly (readonly [field: string, attribute: string])[] = [
  ['CONTAINER_ID_FULL', 'container.id'],
  ['CONTAINER_NAME', 'container.name'],
]
const numberAttributes: readonly (readonly [field: string, attribute: string])[] = [
  ['_PID', 'process.pid'],
  ['_UID', 'process.user.id'],
  ['CODE_LINE', 'code.line.number'],
]

/** Requested fields. `journalctl` always adds cursor and times. */
export const entryFields: readonly string[] = [
  'MESSAGE',
  'PRIORITY',
  '_SYSTEMD_UNIT',
  '_SYSTEMD_USER_UNIT',
  'UNIT',
  'TRACE_ID',
  'SPAN_ID',
  ...textAttributes.map(([field]) => field),
  ...rootAttributes.map(([field]) => field),
  ...numberAttributes.map(([field]) => field),
]

/** Maximum length of an attribute, in UTF-16 units. */
const longestAttribute = 1024

export type EntryKind = 'record' | 'empty' | 'own' | 'odd'

/**
 * Makes records from the output of `journalctl -o json` (systemd, docs/JOURNAL_EXPORT_FORMATS.md). Entries of the agent
 * itself are skipped: each could cause another one.
 */
export class JournalEntries {
  /** Cursor of the last entry; '' if it has none. */
  cursor = ''
  readonly #parser: RecordParser
  readonly #ownPid: number

  constructor(parser: RecordParser, ownPid = process.pid) {
    this.#parser = parser
    this.#ownPid = ownPid
  }

  /** Fills the record only for the result `record`; `odd` means that the line is not an entry. */
  read(record: LogRecord, line: Buffer, observedUs: number): EntryKind {
    this.cursor = ''
    const entry = entryOf(line)
    if (entry === undefined || typeof entry.__CURSOR !== 'string') return 'odd'
    this.cursor = entry.__CURSOR
    if (numberIn(entry, '_PID') === this.#ownPid) return 'own'
    const message = textIn(entry, 'MESSAGE')
    if (message.trim() === '') return 'empty'
    clearRecord(record)
    record.timeUs = Math.max(0, numberIn(entry, '__REALTIME_TIMESTAMP'))
    record.observedUs = observedUs
    addAttributes(record, entry)
    const priority = numberIn(entry, 'PRIORITY')
    record.severity = syslogSeverity(priority)
    record.severityText = syslogNames[priority] ?? ''
    if (setTraceId(record, textIn(entry, 'TRACE_ID'))) setSpanId(record, textIn(entry, 'SPAN_ID'))
    // A line from a pipe has the priority of the pipe: 6 (info), or 3 for Docker's stderr.
    const isPiped = entry._TRANSPORT === 'stdout' || entry.CONTAINER_ID_FULL !== undefined
    this.#parser.fill(record, message, isPiped)
    return 'record'
  }
}

/** Container ID of an entry; '' for none. */
export function journalContainer({ attributes }: LogRecord): string {
  const id = String(attributes.get('container.id') ?? '')
  return /^[0-9a-f]{64}$/.test(id) ? id : ''
}

function entryOf(line: Buffer): Entry | undefined {
  try {
    const value: unknown = JSON.parse(utf8Text(line, 0, line.length))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Entry) : undefined
  } catch {
    // Counted by the caller.
    return undefined
  }
}

function addAttributes(record: LogRecord, entry: Entry): void {
  const { attributes } = record
  for (const [field, attribute] of numberAttributes) {
    const value = numberIn(entry, field)
    if (value >= 0) attributes.add(attribute, value)
  }
  for (const [field, attribute] of textAttributes) addText(record, attribute, textIn(entry, field))
  if (numberIn(entry, '_UID') === 0)
    for (const [field, attribute] of rootAttributes) addText(record, attribute, textIn(entry, field))
  addText(record, 'svc.systemd.unit', unitOf(entry))
}

function addText(record: LogRecord, attribute: string, text: string): void {
  if (text !== '') record.attributes.add(attribute, text.slice(0, longestAttribute))
}

/** Unit as in `journalctl -u`: also for messages of the service manager (process 1) about a unit. */
function unitOf(entry: Entry): string {
  const ofManager = entry._PID === '1' ? textIn(entry, 'UNIT') : ''
  return ofManager || textIn(entry, '_SYSTEMD_USER_UNIT') || textIn(entry, '_SYSTEMD_UNIT')
}

/** Text of a field, of the first one if repeated; '' if missing. */
function textIn(entry: Entry, field: string): string {
  const value = entry[field]
  if (typeof value === 'string') return value
  if (!Array.isArray(value) || value.length === 0) return ''
  if (typeof value[0] === 'number') return textOf(value)
  return typeof value[0] === 'string' ? value[0] : textOf(value[0])
}

/** Values that are not UTF-8, or have control characters, are arrays of bytes. */
function textOf(value: unknown): string {
  if (!Array.isArray(value) || !value.every(byte => typeof byte === 'number')) return ''
  const bytes = Buffer.from(value)
  return utf8Text(bytes, 0, bytes.length)
}

/** Whole number in a field; -1 if it is not a number. */
function numberIn(entry: Entry, field: string): number {
  const text = textIn(entry, field)
  return /^\d{1,16}$/.test(text) ? Number(text) : -1
}
