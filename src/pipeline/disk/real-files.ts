// The file operations of the log on disk, by node:fs.

import {
  closeSync,
  constants,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statfsSync,
  unlinkSync,
  writevSync,
} from 'node:fs'
import { makeDirectories } from '../../foundation/lib/make-directories.ts'
import type { Files } from './log.ts'

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
/**
 * Root may work in a directory of another user, whose links must not lead to other files. A pipe named like a segment
 * must not block us.
 */
const flags = {
  append: O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK,
  update: O_WRONLY | O_NOFOLLOW | O_NONBLOCK,
  read: O_RDONLY | O_NONBLOCK,
}

/** Files of this host. All methods throw the error of the system call. */
export const realFiles: Files = {
  list: directory => readdirSync(directory),
  makeDirectory(directory) {
    makeDirectories(directory, 0o700)
  },
  open: (path, mode) => openSync(path, flags[mode], 0o600),
  write: (fd, parts) => writevSync(fd, parts),
  read: (fd, into, position) => readSync(fd, into, 0, into.length, position),
  size: fd => fstatSync(fd).size,
  truncate: (fd, size) => ftruncateSync(fd, size),
  sync: fd =>
    new Promise((resolve, reject) => {
      fdatasync(fd, error => (error ? reject(error) : resolve()))
    }),
  syncNow: fd => fdatasyncSync(fd),
  syncDirectory(directory) {
    const fd = openSync(directory, 'r')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  },
  close: fd => closeSync(fd),
  rename: (from, to) => renameSync(from, to),
  remove: path => unlinkSync(path),
  space(directory) {
    const { bavail, blocks, bsize } = statfsSync(directory)
    return { free: bavail * bsize, total: blocks * bsize }
  },
}
