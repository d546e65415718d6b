import { utf8Text } from '../../../foundation/lib/utf8-text.ts'
import { collector, gauge, NoData, type Readings, type Tree } from './collector.ts'

const info = gauge('os_info', 'What the operating system is, by its os-release file. The value is 1.', {
  labels: [
    'build_id',
    'id',
    'id_like',
    'image_id',
    'image_version',
    'name',
    'pretty_name',
    'variant',
    'variant_id',
    'version',
    'version_codename',
    'version_id',
  ],
})
const version = gauge('os_version', 'Version of the operating system as a number: major.minor.', {
  labels: ['id', 'id_like', 'name'],
})
const supportEnd = gauge(
  'os_support_end_timestamp_seconds',
  'When support of the operating system ends, in seconds since the Unix epoch.',
)

/** The first existing file counts (os-release(5)). */
const files = ['etc/os-release', 'usr/lib/os-release']
/** Real files have less than 1 KiB. */
const mostBytes = 64 * 1024

interface Release {
  /** Labels of `info`. */
  readonly labels: readonly string[]
  readonly id: string
  readonly idLike: string
  readonly name: string
  /** 0 for none. */
  readonly version: number
  readonly supportEnd: number | undefined
}

/** Name and version of the operating system, from /etc/os-release. */
export const os = collector({
  name: 'os',
  summary: 'Name and version of the operating system',
  source: '/etc/os-release',
  enabledByDefault: true,
  metrics: [info, version, supportEnd],
  start(_options, { host: { root } }) {
    let last = Buffer.alloc(0)
    let release: Release | undefined
    return {
      collect(readings) {
        const path = files.find(file => root.exists(file))
        if (path === undefined) throw new NoData(`${root.at(files[0]!)} not found`)
        const bytes = root.bytes(path)
        if (release === undefined || !bytes.equals(last)) {
          release = undefined
          release = parseRelease(root, path, bytes)
          last = Buffer.from(bytes)
        }
        show(release, readings)
      },
    }
  },
})

function show({ labels, id, idLike, name, ...numbers }: Release, readings: Readings): void {
  readings.setAll(info, 1, labels)
  if (numbers.version > 0) readings.set(version, numbers.version, id, idLike, name)
  if (numbers.supportEnd !== undefined) readings.set(supportEnd, numbers.supportEnd)
}

function parseRelease(root: Tree, path: string, bytes: Buffer): Release {
  const wrong = (what: string) => new Error(`cannot read ${root.at(path)}: ${what}`)
  if (bytes.length > mostBytes) throw wrong('the file is too long')
  let values: ReadonlyMap<string, string>
  try {
    values = parseAssignments(utf8Text(bytes, 0, bytes.length))
  } catch (error) {
    throw wrong((error as Error).message)
  }
  const value = (name: string) => values.get(name) ?? ''
  return {
    labels: info.labels.map(label => value(label.toUpperCase())),
    id: value('ID'),
    idLike: value('ID_LIKE'),
    name: value('NAME'),
    version: Number(/^\d{1,15}(\.\d{0,15})?/.exec(value('VERSION_ID'))?.[0] ?? 0),
    supportEnd: dayStart(value('SUPPORT_END')),
  }

  function dayStart(day: string): number | undefined {
    if (day === '') return undefined
    const start = new Date(`${day}T00:00:00Z`)
    // The round trip rejects 30 February.
    if (Number.isNaN(start.getTime()) || start.toISOString().slice(0, 10) !== day)
      throw wrong(`SUPPORT_END is not a date: ${day.slice(0, 40)}`)
    return start.getTime() / 1000
  }
}

/** `NAME=value` lines as in a shell, without expansions. Throws an error with a reason for any other line. */
export function parseAssignments(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>()
  for (const [i, line] of text.split('\n').entries()) {
    const trimmed = line.trim()
    if (trimmed === '' || trimmed.startsWith('#')) continue
    const match = /^(?:export )?([A-Za-z_]\w*)\s*=\s*(.*)$/.exec(trimmed)
    if (match === null) throw new Error(`line ${i + 1} is not an assignment`)
    const value = unquote(match[2]!)
    if (value === undefined) throw new Error(`line ${i + 1} has an open quote or a control character`)
    values.set(match[1]!, value)
  }
  return values
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t' }

/** Value without its quotes; undefined if invalid. */
function unquote(value: string): string | undefined {
  let out = ''
  // Trailing space belongs to the value only inside quotes.
  let kept = 0
  let quote = ''
  for (let i = 0; i < value.length; i++) {
    const character = value[i]!
    if (character < ' ' && character !== '\t') return undefined
    if (quote === '' && (character === '"' || character === "'")) quote = character
    else if (quote === '' && character === '#') break
    else if (quote !== '' && character === quote) quote = ''
    else if (quote === '"' && character === '\\') {
      const next = value[++i]
      if (next === undefined) return undefined
      out += escapes[next] ?? next
    } else out += character
    if (quote !== '' || (character !== ' ' && character !== '\t')) kept = out.length
  }
  return quote === '' ? out.slice(0, kept) : undefined
}
