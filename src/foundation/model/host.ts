/** A directory tree of the host: procfs, sysfs, the root directory, the udev database. */
export interface Tree {
  /** Its path as this process sees it. */
  readonly root: string
  /** The path of a file below the root, for messages and for code that opens the file itself. */
  at(path: string): string
  /**
   * The whole content of a file. Each run of bytes that are not UTF-8 becomes one U+FFFD. Throws
   * `NodeJS.ErrnoException` (`ENOENT` …), or a plain error above 64 MiB.
   */
  text(path: string): string
  /** Like `text`, trimmed at both ends; undefined if it does not exist, is not readable, or is not a file. */
  find(path: string): string | undefined
  /** A decimal number; undefined as in `find`. Throws if the content is not a number. */
  number(path: string): number | undefined
  /** The content in a buffer that the next read of any tree overwrites. Throws like `text`. */
  bytes(path: string): Buffer
  /** Names in a directory, sorted by their bytes; empty if it does not exist. */
  list(path: string): readonly string[]
  /** Like `list`, but only directories; excludes links to directories. */
  directories(path: string): readonly string[]
  /** Target of a symbolic link as written; undefined if it is none. */
  link(path: string): string | undefined
  /** The absolute path with symbolic links resolved; undefined if it does not resolve. */
  real(path: string): string | undefined
  exists(path: string): boolean
}

/** The host as this process sees it, possibly from a container, through paths to the host's own trees. */
export interface Host {
  readonly proc: Tree
  readonly sys: Tree
  readonly root: Tree
  readonly udev: Tree
}
