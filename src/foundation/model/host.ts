/** A directory of the host that is read: procfs, sysfs, the root directory, the udev database. */
export interface Tree {
  /** Where it is in this process's view. */
  readonly root: string
  /** The path of a file below the root, for messages and for who opens it itself. */
  at(path: string): string
  /**
   * The whole content of a file. Bytes that are no UTF-8 become U+FFFD, one for each run. Throws: `ENOENT` and its
   * like as `NodeJS.ErrnoException`, an error in words where it is longer than 64 MiB.
   */
  text(path: string): string
  /** As `text`, trimmed of white space at both ends; undefined where it is not there, not to be read, or not a file. */
  find(path: string): string | undefined
  /** A decimal number; undefined as `find`. Throws where what is there is none. */
  number(path: string): number | undefined
  /** The content as bytes in a buffer that the next read of any tree uses again. Throws as `text`. */
  bytes(path: string): Buffer
  /** Names in a directory in the order of their bytes; empty where there is none. */
  list(path: string): readonly string[]
  /** As `list`, of directories alone; links to directories are none. */
  directories(path: string): readonly string[]
  /** Target of a symbolic link as it is written; undefined where it is none. */
  link(path: string): string | undefined
  /** The path without symbolic links, absolute; undefined where it leads nowhere. */
  real(path: string): string | undefined
  exists(path: string): boolean
}

/** The host, as this process sees it: perhaps from a container, by paths that lead to the host's own. */
export interface Host {
  readonly proc: Tree
  readonly sys: Tree
  readonly root: Tree
  readonly udev: Tree
}
