import { readForeign } from '../../foundation/lib/foreign-file.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import { isOfHost } from '../../kernel/mapped-mounts.ts'
import type { ProcessFiles } from './process-files.ts'

/** Maximum bytes of a version file. */
const maxBytes = 16 * 1024
const maxVersionBytes = 64
/** File systems whose files are read: opening a file on others may hang with their server. */
const near = new Set(
  'bcachefs btrfs erofs ext2 ext3 ext4 f2fs overlay ramfs rootfs squashfs tmpfs vfat xfs zfs'.split(' '),
)

interface Runtime {
  readonly program: RegExp
  /** File beside the program's directory, and the pattern for the version in it. */
  readonly file: string
  readonly version: RegExp
}

const runtimes: readonly Runtime[] = [
  {
    program: /^(node|nodejs)(-?\d+)?$/,
    file: 'include/node/node_version.h',
    version:
      /^#define NODE_MAJOR_VERSION (\d{1,4})$[\s\S]{0,200}?^#define NODE_MINOR_VERSION (\d{1,4})$[\s\S]{0,200}?^#define NODE_PATCH_VERSION (\d{1,4})$/m,
  },
  // JDK 9 and later, and most builds of 8.
  { program: /^java$/, file: 'release', version: /^JAVA_VERSION="([\w.+-]{1,64})"$/m },
]

/** `python3.11`, `php-fpm8.2`, `ruby3.1`. */
const named = /^(?:python|pypy|php|php-fpm|ruby|jruby|perl|lua|node|nodejs)-?(\d{1,4}(?:\.\d{1,4}){1,2})$/
const interpreter = /^(?:python|pypy|php|php-fpm|ruby|jruby|perl|node|nodejs|java|bun|deno|dotnet)[\d.-]*$/
/** Directories of version managers: `versions/3.11.4/bin`, `v20.11.0/bin`, `cpython-3.12.1-linux/bin`. */
const inPath = /\/(?:[A-Za-z]{1,32}-?)?(\d{1,4}\.\d{1,4}\.\d{1,4})(?:[-+][^/]{0,255})?\/bin\/$/
/** Without one of these words, the version may be that of an application that bundles its runtime. */
const ofRuntime = /node|nvm|python|pypy|ruby|rbenv|java|jdk|jre|php|perl|dotnet|deno|bun/

/**
 * `process.runtime.version`, from paths and files beside the program: nothing is executed, and programs are not
 * searched. Files of a container are read through /proc/PID/root.
 */
export class RuntimeVersions {
  readonly #files: ProcessFiles

  constructor(files: ProcessFiles) {
    this.#files = files
  }

  /** '' if unknown. */
  of(pid: number, executable: string): string {
    return ownText(this.#found(pid, executable), maxVersionBytes)
  }

  #found(pid: number, executable: string): string {
    const slash = executable.lastIndexOf('/')
    const program = executable.slice(slash + 1)
    if (!interpreter.test(program)) return ''
    const version = named.exec(program)?.[1] ?? ''
    const directory = executable.slice(0, slash + 1)
    const found = inPath.exec(directory)?.[1] ?? ''
    // The more exact version, if both agree.
    const agrees = version === '' ? ofRuntime.test(directory) : found.startsWith(`${version}.`)
    if (found !== '' && agrees) return found
    const runtime = runtimes.find(each => each.program.test(program))
    if (version !== '' || runtime === undefined) return version
    return this.#beside(pid, executable, runtime)
  }

  #beside(pid: number, executable: string, { file, version }: Runtime): string {
    const prefix = executable.slice(0, executable.lastIndexOf('/', executable.lastIndexOf('/') - 1) + 1)
    const mounts = this.#files.text(pid, 'mountinfo').split('\n')
    // Another file system may be mounted beside the program.
    const isNear = (path: string) => near.has(fileSystem(mounts, path))
    if (!executable.startsWith('/') || !isNear(executable) || !isNear(prefix + file)) return ''
    const { procDir } = this.#files
    // File systems that users mounted in their own namespaces may never respond.
    if (!isOfHost(procDir, pid)) return ''
    // Links are resolved inside the container's root.
    const bytes = readForeign(prefix + file, maxBytes, `${procDir}/${pid}/root`)
    const found = version.exec(bytes?.toString('latin1') ?? '')
    return found === null ? '' : ownText(found.slice(1).join('.'), maxVersionBytes)
  }
}

/**
 * Type of the file system of a path, as the process sees it; '' if unknown. `mounts`: lines of proc_pid_mountinfo(5),
 * "id parent major:minor root mount-point options [fields…] - type source options".
 */
function fileSystem(mounts: readonly string[], path: string): string {
  let longest = 0
  let type = ''
  for (const line of mounts) {
    const point = line.split(' ', 5)[4] ?? ''
    const isAbove = point === '/' || path === point || path.startsWith(`${point}/`)
    if (point === '' || !isAbove || point.length < longest) continue
    longest = point.length
    type = line.slice(line.indexOf(' - ') + 3).split(' ', 1)[0]!
  }
  return type
}
