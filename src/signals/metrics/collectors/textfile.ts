import { posix } from 'node:path'
import { parseExposition, type TextFamily } from '../../../foundation/lib/exposition-text.ts'
import { errorText } from '../../../foundation/lib/logger.ts'
import { type Family, family } from '../../../foundation/model/collector.ts'
import { list } from '../../../foundation/schema/collections.ts'
import { boolean, path } from '../../../foundation/schema/kinds.ts'
import { type Kind, key } from '../../../foundation/schema/tree.ts'
import { MountTable, RemotePaths } from '../../../kernel/mounts.ts'
import { RemoteFiles } from '../../../kernel/remote-files.ts'
import { type Access, expand, localOrRemote, remoteAccess } from './_text-files.ts'
import { collector, gauge, type Readings } from './collector.ts'

const scrapeError = gauge(
  'textfile_scrape_error',
  'Whether a directory or file could not be read, or contradicts another (1), or all went well (0).',
)
const mtime = gauge('textfile_mtime_seconds', 'When a file that was read changed last, since 1970.', {
  labels: ['file'],
})

const mostFileBytes = 16 * 1024 * 1024
/** Maximum samples of all files together. */
const mostSamples = 200_000
const mostFiles = 4096
/** Maximum wait of a scrape for file systems that may hang, in milliseconds. */
const patienceMs = 500

const several = list(path)

/** A list, or one path. A variable may have several, separated by commas. */
const directories: Kind<readonly string[]> = {
  ...several,
  expects: 'a path, or a list of paths',
  json: { anyOf: [path.json, several.json] },
  read(value, key, report) {
    if (value.type !== 'scalar' || value.value === null || value.loose)
      return several.read(value, key, report)
    const one = path.read(value, key, report)
    return one === undefined ? undefined : one === '' ? [] : [one]
  },
  // Usually it is one path.
  show: (paths, hide) => (paths.length === 1 ? path.show(paths[0]!, hide) : several.show(paths, hide)),
}

/** Metrics from `*.prom` files in the text format 0.0.4. */
export const textfile = collector({
  name: 'textfile',
  summary: 'Metrics from files',
  source: '*.prom files',
  enabledByDefault: true,
  metrics: [scrapeError, mtime],
  dynamic: 'All metrics of the `*.prom` files in `directory`, under their own names.',
  options: {
    enabled: key(boolean, true, 'Serves metrics from files; same switch as `collectors.textfile`.'),
    directory: key(
      directories,
      ['/var/lib/node_exporter/textfile_collector'],
      'Directories of `*.prom` files; may contain `*`, `?` and `[a-z]`.',
    ),
    require_directory: key(
      boolean,
      false,
      'Reports a missing directory as an error, instead of as an empty one.',
    ),
  },
  flags: { enabled: '', require_directory: '' },
  asOriginal: { directory: [], require_directory: true },
  start({ directory: patterns, require_directory: required }, { host, log }) {
    const table = new MountTable(host.proc, ['self/mountinfo'], '/')
    const remote = new RemoteFiles({ log })
    const known = new Map<string, Family>()
    let cached: ReadonlyMap<string, ReadFile> = new Map()
    let faults = new Map<string, string>()
    let found: Found = { metrics: [], files: [], failed: false }

    async function readAll(signal: AbortSignal): Promise<Found> {
      const round = new Round()
      const paths = new RemotePaths(patterns.length > 0 ? table.readIfPresent() : [])
      let distant: Access | undefined
      const access = localOrRemote(paths, () => {
        distant ??= remoteAccess(remote, AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]))
        return distant
      })
      for (const pattern of patterns)
        for (const directory of await expand(pattern, access))
          await readDirectory({ directory, access, required, cached, round })
      cached = round.read
      const metrics = merged(round)
      for (const [where, fault] of round.faults)
        if (faults.get(where) !== fault)
          log.warn('cannot read metrics from a file', { path: where, reason: fault })
      faults = round.faults
      return { metrics, files: round.files, failed: round.failed }
    }

    return {
      async wait(signal) {
        found = await readAll(signal)
      },
      collect(readings) {
        const used = new Set<string>()
        for (const metric of found.metrics) show(readings, metric, known, used)
        for (const name of known.keys()) if (!used.has(name)) known.delete(name)
        for (const { path, mtimeSeconds } of found.files) readings.set(mtime, mtimeSeconds, path)
        readings.set(scrapeError, found.failed ? 1 : 0)
      },
      close: () => remote.close(),
    }
  },
})

/** Content of a read file. */
interface ReadFile {
  readonly path: string
  readonly stamp: string | undefined
  readonly mtimeSeconds: number
  readonly families: readonly TextFamily[]
  /** Fault of its text; '' for none. A file with a fault shows nothing. */
  readonly fault: string
  /** Number of samples, or the room that it had if it has a fault. */
  readonly samples: number
}

interface Metric {
  readonly family: TextFamily
  readonly help: string
}

/** Result of a scrape. */
interface Found {
  readonly metrics: readonly Metric[]
  readonly files: readonly ReadFile[]
  readonly failed: boolean
}

/** Progress of one scrape. */
class Round {
  /** Files without a fault. */
  readonly files: ReadFile[] = []
  /** All read files by path. */
  readonly read = new Map<string, ReadFile>()
  readonly faults = new Map<string, string>()
  samples = 0
  tried = 0
  failed = false

  fail(where: string, fault: string): void {
    this.failed = true
    this.faults.set(where, fault)
  }
}

interface DirectoryRead {
  readonly directory: string
  readonly access: Access
  readonly required: boolean
  readonly cached: ReadonlyMap<string, ReadFile>
  readonly round: Round
}

async function readDirectory({ directory, access, required, cached, round }: DirectoryRead): Promise<void> {
  let names: readonly string[]
  try {
    names = await access.list(directory)
  } catch (error) {
    if (required || !isAbsent(error)) round.fail(directory, errorText(error))
    return
  }
  for (const name of names) {
    if (!name.endsWith('.prom')) continue
    if (++round.tried > mostFiles) return round.fail(directory, `more than ${mostFiles} files`)
    const path = posix.join(directory, name)
    try {
      const file = await readFile(path, access, cached.get(path), mostSamples - round.samples)
      round.read.set(path, file)
      if (file.fault !== '') throw new Error(file.fault)
      round.files.push(file)
      round.samples += file.samples
    } catch (error) {
      round.fail(path, errorText(error))
    }
  }
}

/** Reads a file unless it is unchanged. */
async function readFile(
  path: string,
  access: Access,
  before: ReadFile | undefined,
  samplesLeft: number,
): Promise<ReadFile> {
  const stamp = access.stamp?.(path)
  if (before?.stamp !== undefined && before.stamp === stamp) {
    // A file over the limit may be valid if there is more room now.
    const isFaulty = before.fault !== ''
    if (isFaulty ? samplesLeft <= before.samples : before.samples <= samplesLeft) return before
  }
  const { bytes, mtimeSeconds } = await access.read(path, mostFileBytes)
  const file = { path, stamp, mtimeSeconds }
  try {
    const families = parseExposition(bytes, samplesLeft)
    return { ...file, families, fault: '', samples: linesOf(families) }
  } catch (error) {
    return { ...file, families: [], fault: errorText(error), samples: samplesLeft }
  }
}

/** Approximate number of lines on the page. */
function linesOf(families: readonly TextFamily[]): number {
  let lines = 0
  for (const { samples } of families)
    for (const { distribution } of samples)
      lines += distribution === undefined ? 1 : distribution.parts.length + 2
  return lines
}

/** Metrics of all files. The first of conflicting ones is kept. */
function merged(round: Round): readonly Metric[] {
  const helps = new Map<string, string>()
  const sources = new Map<string, string[]>()
  const owners = new Map<string, string>()
  const kept: TextFamily[] = []
  for (const { path, families } of round.files) {
    for (const family of families) {
      const { name, help } = family
      const first = helps.get(name)
      if (help !== undefined && first !== undefined && help !== first) {
        round.fail(path, `HELP of ${name} differs from ${sources.get(name)![0]}`)
        continue
      }
      // `x_sum` beside a summary `x` would be on the page twice.
      const names = seriesNames(family)
      if (names.some(each => (owners.get(each) ?? name) !== name)) {
        round.fail(path, `name ${name} conflicts with another metric`)
        continue
      }
      for (const each of names) owners.set(each, name)
      if (help !== undefined) helps.set(name, help)
      const paths = sources.get(name)
      if (paths) paths.push(path)
      else sources.set(name, [path])
      kept.push(family)
    }
  }
  return kept.map(family => ({
    family,
    help: family.help ?? `Metric read from ${sources.get(family.name)!.join(', ')}`,
  }))
}

function seriesNames({ name, type }: TextFamily): readonly string[] {
  if (type === 'summary') return [name, `${name}_sum`, `${name}_count`]
  if (type === 'histogram') return [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]
  return [name]
}

/** Shows metrics. `known`: families by content, as the page compares them by identity. */
function show(
  readings: Readings,
  { family: text, help }: Metric,
  known: Map<string, Family>,
  used: Set<string>,
): void {
  const { name, type, labels } = text
  const identity = [name, type, help, ...labels].join('\0')
  let shown = known.get(identity)
  if (shown === undefined) {
    shown = family(type, name, help, { labels, absolute: true })
    known.set(identity, shown)
  }
  used.add(identity)
  for (const { value, distribution, labels } of text.samples) {
    if (distribution === undefined) readings.setAll(shown, value, labels)
    else readings.setDistribution(shown, distribution, labels)
  }
}

function isAbsent(error: unknown): boolean {
  return (
    (error as NodeJS.ErrnoException).code === 'ENOENT' || errorText(error) === 'no such file or directory'
  )
}
