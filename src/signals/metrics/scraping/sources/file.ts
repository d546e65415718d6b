import { type FSWatcher, watch } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileCause } from '../../../../foundation/lib/file-content.ts'
import { readSmallFile } from '../../../../foundation/lib/small-file.ts'
import type { TargetGroup } from '../scrape-job.ts'
import type { SettingsOf, SourceKind, SourceOptions, TargetSource, TargetSourceState } from '../source.ts'
import { readGroup } from './_group-list.ts'
import { jsonElements } from './_json-list.ts'
import { TargetGroupPublisher } from './_target-group-publisher.ts'
import { yamlElements } from './_yaml-list.ts'

const maxFileBytes = 16 * 1024 * 1024
const maxFiles = 10_000
/** Delay after a change, in milliseconds: files change in several steps, each with its own event. */
const settleMs = 50

/**
 * Targets from files (`file_sd_configs`): JSON or YAML by extension, with `*` in the last path component. Directories
 * are watched, and also read every `refreshMs`, as network file systems report no changes. A file that is unreadable or
 * half written keeps its targets; a removed one has none.
 */
class FileTargets implements TargetSource {
  readonly #settings: SettingsOf<'file'>
  readonly #publisher: TargetGroupPublisher
  readonly #patterns: readonly { readonly path: string; readonly name: RegExp | undefined }[]
  /** State of each file when it was read; '' if it was unreadable. */
  readonly #stamps = new Map<string, string>()
  readonly #watchers = new Map<string, { readonly inode: bigint; readonly watcher: FSWatcher }>()
  /** Existing directories. Files of a missing directory are not removed but unreachable. */
  readonly #present = new Set<string>()
  /** Paths reported by watches. */
  #touched = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #looking = false
  #wanted = false
  #stopped = false

  constructor(settings: SettingsOf<'file'>, options: SourceOptions) {
    this.#settings = settings
    this.#publisher = new TargetGroupPublisher('file', options)
    this.#patterns = settings.patterns.map(pattern => {
      const path = resolve(pattern)
      return { path, name: basename(path).includes('*') ? nameFilter(basename(path)) : undefined }
    })
  }

  get state(): TargetSourceState {
    return this.#publisher.state
  }

  start(): void {
    void this.#look()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    for (const { watcher } of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
    this.#publisher.close()
  }

  async #look(): Promise<void> {
    this.#looking = true
    this.#wanted = false
    await this.#watchDirectories()
    const touched = this.#touched
    this.#touched = new Set()
    const paths = await this.#paths()
    for (const path of paths) {
      if (this.#stopped) return
      await this.#read(path, touched.has(path))
    }
    this.#forgetOthers(paths)
    this.#looking = false
    if (this.#stopped) return
    this.#publisher.known()
    this.#lookIn(this.#wanted ? settleMs : this.#settings.refreshMs)
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), ms).unref()
  }

  /** Whether a path is one of our files, or a link that the kubelet uses to replace a whole directory (`..data`). */
  #isOurs(directory: string, name: string): boolean {
    if (name.startsWith('..')) return true
    const path = join(directory, name)
    return this.#patterns.some(each =>
      each.name === undefined ? each.path === path : dirname(each.path) === directory && each.name.test(name),
    )
  }

  /** Watches start before files are read, so that no change in between is missed. */
  async #watchDirectories(): Promise<void> {
    for (const directory of new Set(this.#patterns.map(({ path }) => dirname(path)))) {
      const inode = await stat(directory, { bigint: true }).then(
        ({ ino }) => ino,
        () => undefined,
      )
      if (inode === undefined) this.#present.delete(directory)
      else this.#present.add(directory)
      const known = this.#watchers.get(directory)
      if (this.#stopped || (inode !== undefined && known?.inode === inode)) continue
      known?.watcher.close()
      this.#watchers.delete(directory)
      if (inode === undefined) continue
      try {
        const watcher = watch(directory, { persistent: false }, (_, name) => this.#touch(directory, name))
        this.#watchers.set(directory, { inode, watcher })
        watcher.on('error', () => {
          watcher.close()
          if (this.#watchers.get(directory)?.watcher === watcher) this.#watchers.delete(directory)
        })
      } catch {
        // The limit of watches is reached (inotify(7), max_user_watches): the regular reading finds changes too.
      }
    }
  }

  #touch(directory: string, name: string | null): void {
    if (this.#stopped || (name !== null && !this.#isOurs(directory, name))) return
    if (name !== null && this.#touched.size < maxFiles) this.#touched.add(join(directory, name))
    // Later events do not extend the delay: changes may never pause.
    if (!this.#looking && !this.#wanted) this.#lookIn(settleMs)
    this.#wanted = true
  }

  /** Existing files that match the paths. */
  async #paths(): Promise<ReadonlySet<string>> {
    const paths = new Set<string>()
    for (const { path, name } of this.#patterns) {
      if (name === undefined) {
        paths.add(path)
        continue
      }
      const directory = dirname(path)
      try {
        const names = (await readdir(directory)).filter(each => name.test(each)).sort()
        for (const each of names) paths.add(join(directory, each))
        this.#publisher.report(directory, undefined)
      } catch (error) {
        this.#publisher.report(directory, {
          reason: `cannot find target files in ${directory}: ${directoryCause(error)}`,
          hint: `make ${directory} a directory that svc can read, or correct the files of file_sd`,
        })
        for (const each of this.#stamps.keys()) if (dirname(each) === directory) paths.add(each)
      }
    }
    const isTooMany = paths.size > maxFiles
    this.#publisher.report(
      'files',
      isTooMany
        ? {
            reason: `more than ${maxFiles} target files; the rest are left out`,
            hint: 'put more targets in each file',
          }
        : undefined,
    )
    return isTooMany ? new Set([...paths].slice(0, maxFiles)) : paths
  }

  /** `isTouched`: read it even if its state is unchanged, as file system clocks are coarse. */
  async #read(path: string, isTouched: boolean): Promise<void> {
    let stamp = ''
    try {
      const stats = await stat(path, { bigint: true })
      stamp = [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join()
      if (!isTouched && this.#stamps.get(path) === stamp) return
      const groups = await readGroups(path)
      if (this.#stopped) return
      this.#publisher.put(path, groups)
      this.#publisher.report(path, undefined)
    } catch (error) {
      if (this.#stopped) return
      this.#failed(path, error as Error)
    }
    this.#stamps.set(path, stamp)
  }

  #failed(path: string, error: NodeJS.ErrnoException): void {
    const isGone = error.code === 'ENOENT' && this.#present.has(dirname(path))
    if (isGone) this.#publisher.remove(path)
    const cause = error.code === undefined ? error.message : fileCause(error)
    const kept = this.#publisher.targetsOf(path)
    const isThere = error.code !== 'ENOENT'
    const hint =
      error.code === undefined
        ? `correct ${path}`
        : `${isThere ? `make ${path} readable for svc` : `create ${path}`}, or correct file_sd`
    this.#publisher.report(path, {
      reason: `cannot read targets from ${path}: ${cause}`,
      hint: kept === 0 ? hint : `${hint}; until then svc keeps its last ${kept} targets`,
    })
  }

  /** Removes targets and faults of files that no longer exist. */
  #forgetOthers(paths: ReadonlySet<string>): void {
    for (const path of [...this.#stamps.keys()]) {
      if (paths.has(path)) continue
      this.#stamps.delete(path)
      this.#publisher.report(path, undefined)
    }
    this.#publisher.keepOnly(paths)
  }
}

/** Source kind for `file_sd_configs`. */
export const fileSource: SourceKind<'file'> = {
  kind: 'file',
  open: (settings, options) => new FileTargets(settings, options),
}

/** Rejects with an `Error` with a reason, or with a system error, which has a code. */
async function readGroups(path: string): Promise<readonly TargetGroup[]> {
  const bytes = await readBytes(path)
  const elements = /\.json$/i.test(path) ? jsonElements(bytes) : yamlElements(bytes.toString('utf8'))
  const extra = new Map([['__meta_filepath', path]])
  const groups: TargetGroup[] = []
  for await (const element of elements)
    groups.push(readGroup(element, groups.length, `${path}:${groups.length}`, extra))
  return groups
}

async function readBytes(path: string): Promise<Buffer> {
  const bytes = await readSmallFile(path, maxFileBytes)
  if (bytes.length === 0) throw new Error('the file is empty; use [] for no targets')
  return bytes
}

function nameFilter(name: string): RegExp {
  const parts = name.split(/\*+/).map(part => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 's')
}

function directoryCause(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'ENOENT' ? 'no such directory' : code === 'EACCES' ? 'permission denied' : message
}
