import { statfsSync } from 'node:fs'
import { errnoText } from '../../../foundation/lib/errno-text.ts'
import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { list } from '../../../foundation/schema/collections.ts'
import { duration, nameOrRegex, regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { type Mount, MountTable } from '../../../kernel/mounts.ts'
import { type FileSystemStats, type RemoteFileError, RemoteFiles } from '../../../kernel/remote-files.ts'
import { collector, gauge, type Readings } from './collector.ts'

const labels = ['device', 'device_error', 'fstype', 'mountpoint']
const attributes = {
  device: 'system.device',
  fstype: 'system.filesystem.type',
  mountpoint: 'system.filesystem.mountpoint',
}
const size = gauge('filesystem_size_bytes', 'How large the file system is.', {
  labels,
  otel: { name: 'system.filesystem.limit', unit: 'By', kind: 'updowncounter', attributes },
})
const free = gauge('filesystem_free_bytes', 'Space of the file system that nothing uses.', { labels })
const avail = gauge(
  'filesystem_avail_bytes',
  'Space of the file system that users other than root can use.',
  {
    labels,
    otel: {
      name: 'system.filesystem.usage',
      unit: 'By',
      kind: 'updowncounter',
      attributes,
      constant: { 'system.filesystem.state': 'free' },
    },
  },
)
const files = gauge('filesystem_files', 'Files that the file system has room for, used or not.', { labels })
const filesFree = gauge('filesystem_files_free', 'Files that can still be made in the file system.', {
  labels,
})
const readOnly = gauge(
  'filesystem_readonly',
  'Whether the file system is mounted read-only (1), or not (0).',
  {
    labels,
  },
)
const deviceError = gauge(
  'filesystem_device_error',
  'Whether the file system did not answer (1); the label of the same name says why.',
  { labels },
)
const purgeable = gauge(
  'filesystem_purgeable_bytes',
  'Space that the system could take back, which Linux does not tell: always 0.',
  { labels },
)
const mountInfo = gauge('filesystem_mount_info', 'Device number of a mount. The value is 1.', {
  labels: ['device', 'major', 'minor', 'mountpoint'],
})

const defaultTypes =
  '^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|erofs|sysfs|tracefs)$'
const defaultPoints =
  '^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)'

/** Maximum wait of a scrape for mounts that may hang, in milliseconds, */
const patienceMs = 500
/** and for those that have not responded since the previous scrape. */
const pendingPatienceMs = 50
const timedOut = 'mountpoint timeout'

/** Space on mounted file systems, from /proc/1/mountinfo and statfs(2). */
export const filesystem = collector({
  name: 'filesystem',
  summary: 'Space on mounted file systems',
  source: '/proc/1/mountinfo, statfs(2)',
  enabledByDefault: true,
  metrics: [size, free, avail, files, filesFree, readOnly, deviceError, purgeable, mountInfo],
  options: {
    ignored_fs_types: key(
      list(nameOrRegex),
      [],
      'Types of file systems to exclude in place of `fs_types_exclude`: names, or regular expressions between slashes.',
    ),
    ignored_mount_points: key(
      list(regex),
      [],
      'Regular expressions for mount points to exclude in place of `mount_points_exclude`.',
    ),
    mount_timeout: key(
      duration(),
      5000,
      'Time that a mount may take to answer. A scrape waits 500 ms of it at most; an answer after that is shown by the next scrape.',
    ),
    mount_points_exclude: key(
      regex,
      defaultPoints,
      'Regular expression for mount points to exclude; empty for none.',
    ),
    mount_points_include: key(
      regex,
      '',
      'Regular expression for mount points to show instead of all that are not left out; empty for all.',
    ),
    fs_types_exclude: key(
      regex,
      defaultTypes,
      'Regular expression for types of file systems to exclude; empty for none.',
    ),
    fs_types_include: key(
      regex,
      '',
      'Regular expression for types of file systems to show instead of all that are not left out; empty for all.',
    ),
  },
  start(options, { host, log }) {
    const showsType = filter(
      {
        ignored: ['ignored_fs_types', options.ignored_fs_types.map(typePattern)],
        exclude: ['fs_types_exclude', options.fs_types_exclude],
        include: ['fs_types_include', options.fs_types_include],
      },
      defaultTypes,
    )
    const showsPoint = filter(
      {
        ignored: ['ignored_mount_points', options.ignored_mount_points],
        exclude: ['mount_points_exclude', options.mount_points_exclude],
        include: ['mount_points_include', options.mount_points_include],
      },
      defaultPoints,
    )
    const table = new MountTable(host.proc, ['1/mountinfo', 'self/mountinfo'], host.root.root)
    const remote = new RemoteMounts(new RemoteFiles({ log }), options.mount_timeout)
    let mounts: readonly Mount[] | undefined
    let shown: readonly Shown[] = []
    return {
      async wait(signal) {
        const now = table.read()
        if (now !== mounts) {
          shown = withoutRepeats(now.filter(mount => showsPoint(mount.point) && showsType(mount.type)))
          remote.choose(shown.filter(({ mount }) => mount.isRemote))
          mounts = now
        }
        await remote.ask(signal)
      },
      collect(readings) {
        for (const each of shown)
          show(readings, each, each.mount.isRemote ? remote.answer(each.key) : local(each.mount.path))
      },
      close: () => remote.close(),
    }
  },
})

/** A shown mount. */
interface Shown {
  readonly mount: Mount
  /** Device number of its file system, and bytes of its path. */
  readonly key: string
  /** Label values of a responding mount. */
  readonly labels: readonly string[]
  readonly info: readonly string[]
  /** Whether an earlier mount has the same labels: only the device number may differ. */
  readonly repeats: boolean
}

/** Answer of a file system: its numbers, or the reason why there are none. */
type Answer = FileSystemStats | string

function show(readings: Readings, { mount, labels, info, repeats }: Shown, answer: Answer): void {
  if (typeof answer === 'string') {
    if (repeats) return
    const values = [mount.device, answer, mount.type, mount.point]
    readings.setAll(deviceError, 1, values)
    readings.setAll(readOnly, mount.isReadOnly && answer !== timedOut ? 1 : 0, values)
    return
  }
  readings.setAll(mountInfo, 1, info)
  if (repeats) return
  const { bsize } = answer
  readings.setAll(deviceError, 0, labels)
  readings.setAll(readOnly, mount.isReadOnly ? 1 : 0, labels)
  readings.setAll(size, answer.blocks * bsize, labels)
  readings.setAll(free, answer.bfree * bsize, labels)
  readings.setAll(avail, answer.bavail * bsize, labels)
  readings.setAll(files, answer.files, labels)
  readings.setAll(filesFree, answer.ffree, labels)
  readings.setAll(purgeable, 0, labels)
}

function local(path: Buffer): Answer {
  try {
    return statfsSync(path)
  } catch (error) {
    return errnoText(-((error as NodeJS.ErrnoException).errno ?? 0))
  }
}

/** Mounts without duplicates; those that differ only in their device numbers are repeats. */
function withoutRepeats(mounts: readonly Mount[]): readonly Shown[] {
  const series = new Set<string>()
  const infos = new Set<string>()
  const kept: Shown[] = []
  for (const mount of mounts) {
    const { device, type, point, major, minor } = mount
    const labels = [device, '', type, point]
    const info = [device, major, minor, point]
    const repeats = series.has(labels.join('\0'))
    if (repeats && infos.has(info.join('\0'))) continue
    series.add(labels.join('\0'))
    infos.add(info.join('\0'))
    kept.push({ mount, key: `${major}:${minor} ${mount.path.toString('latin1')}`, labels, info, repeats })
  }
  return kept
}

interface Patterns {
  readonly ignored: readonly [option: string, patterns: readonly string[]]
  readonly exclude: readonly [option: string, pattern: string]
  readonly include: readonly [option: string, pattern: string]
}

/** Filter from the options. Throws if more than one is set. `byDefault` is the default of `exclude`. */
function filter({ ignored, exclude, include }: Patterns, byDefault: string): (text: string) => boolean {
  const written = [
    ...(ignored[1].length > 0 ? [ignored[0]] : []),
    ...(exclude[1] !== '' && exclude[1] !== byDefault ? [exclude[0]] : []),
    ...(include[1] !== '' ? [include[0]] : []),
  ]
  if (written.length > 1) throw new Error(`${written.join(' and ')} are mutually exclusive; set one of them`)
  if (include[1] !== '') {
    const wanted = linearRegExp(include[1])
    return text => wanted.test(text)
  }
  const sources = ignored[1].length > 0 ? ignored[1] : exclude[1] !== '' ? [exclude[1]] : []
  const unwanted = sources.map(linearRegExp)
  return text => !unwanted.some(pattern => pattern.test(text))
}

/** Regular expression of an item of `ignored_fs_types`; slashes are optional if it is not a name. */
function typePattern(item: string): string {
  if (/^[\w.-]+$/.test(item)) return `^${item.replaceAll('.', '\\.')}$`
  return /^\/.+\/$/s.test(item) ? item.slice(1, -1) : item
}

interface RemoteMount {
  readonly key: string
  readonly path: Buffer
  /** Whether a request is pending. */
  isPending: boolean
  answer: Answer
  /** Time of the last answer, by `performance.now()`. */
  answeredAt: number
  tookMs: number
}

/** Queries mounts that may hang: one request at a time for each, independent of the others. */
class RemoteMounts {
  readonly #files: RemoteFiles
  readonly #timeoutMs: number
  readonly #mounts = new Map<string, RemoteMount>()
  /** Callbacks for each answer. */
  readonly #waiting = new Set<() => void>()
  /** Answers since this time are valid for this scrape. */
  #since = 0
  #lastEnd = 0

  constructor(files: RemoteFiles, timeoutMs: number) {
    this.#files = files
    this.#timeoutMs = timeoutMs
  }

  /** Sets the mounts to query. */
  choose(mounts: readonly Shown[]): void {
    const byKey = new Map(mounts.map(({ key, mount }) => [key, mount.path]))
    for (const key of this.#mounts.keys()) if (!byKey.has(key)) this.#mounts.delete(key)
    for (const [key, path] of byKey)
      if (!this.#mounts.has(key))
        this.#mounts.set(key, { key, path, isPending: false, answer: timedOut, answeredAt: -1, tookMs: 0 })
  }

  /** Queries mounts without a pending request, and waits briefly for all. */
  async ask(signal: AbortSignal): Promise<void> {
    const all = [...this.#mounts.values()]
    const pending = all.filter(({ isPending }) => isPending)
    const fresh = all.filter(({ isPending }) => !isPending)
    for (const mount of fresh) void this.#ask(mount)
    await Promise.all([
      this.#answers(fresh, patienceMs, signal),
      this.#answers(pending, pendingPatienceMs, signal),
    ])
    this.#since = this.#lastEnd
    this.#lastEnd = performance.now()
  }

  answer(key: string): Answer {
    const mount = this.#mounts.get(key)
    if (mount === undefined || mount.answeredAt <= this.#since || mount.tookMs > this.#timeoutMs)
      return timedOut
    return mount.answer
  }

  close(): void {
    this.#files.close()
  }

  /** Never rejects. */
  async #ask(mount: RemoteMount): Promise<void> {
    mount.isPending = true
    const askedAt = performance.now()
    mount.answer = await this.#files
      .statfs(mount.path, mount.key)
      .catch((error: RemoteFileError) => error.message)
    mount.answeredAt = performance.now()
    mount.tookMs = mount.answeredAt - askedAt
    mount.isPending = false
    for (const look of this.#waiting) look()
  }

  /** Resolves when no request is pending, after a time, or at the signal. Leaves no callback behind. */
  async #answers(mounts: readonly RemoteMount[], ms: number, signal: AbortSignal): Promise<void> {
    if (mounts.length === 0 || signal.aborted) return
    let end = () => {}
    const over = new Promise<void>(resolve => {
      end = resolve
    })
    const look = () => {
      if (!mounts.some(({ isPending }) => isPending)) end()
    }
    const timer = setTimeout(end, Math.min(ms, this.#timeoutMs))
    signal.addEventListener('abort', end)
    this.#waiting.add(look)
    await over
    this.#waiting.delete(look)
    signal.removeEventListener('abort', end)
    clearTimeout(timer)
  }
}
