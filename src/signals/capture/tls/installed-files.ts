import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { realPath, sortedNames } from '../../../foundation/lib/optional-files.ts'
import { parseMounts, RemotePaths } from '../../../kernel/mounts.ts'
import { knownPrograms, type LibraryName, libraryAt, libraryDirectories } from './libraries.ts'

/** A file of the host that programs may map at any time. */
export interface InstalledFile {
  readonly path: string
  readonly library: LibraryName
}

/**
 * TLS libraries in the directories of the host's distribution, and programs that contain one. Reads only if a directory
 * has changed since `stamp`; otherwise `files` is undefined.
 */
export function installedFiles(
  rootDir: string,
  stamp: string,
): { readonly stamp: string; readonly files: readonly InstalledFile[] | undefined } {
  const far = farPaths()
  const near = (path: string) => !far.has(path)
  const directories = libraryDirectories.map(path => join(rootDir, path)).filter(near)
  const programs = knownPrograms.map(path => join(rootDir, path)).filter(near)
  const now = [...directories, ...programs].map(stampOf).join(' ')
  if (now === stamp) return { stamp, files: undefined }
  const found = new Map<string, LibraryName>()
  const add = (path: string, isProgram: boolean) => {
    const library = libraryAt(path, isProgram)
    const real = library === undefined ? '' : realPath(path)
    if (real !== '' && near(real)) found.set(real, library!)
  }
  for (const directory of directories)
    for (const name of sortedNames(directory)) add(join(directory, name), false)
  for (const program of programs) add(program, true)
  return { stamp: now, files: [...found].map(([path, library]) => ({ path, library })) }
}

function farPaths(): RemotePaths {
  try {
    return new RemotePaths(parseMounts(readFileSync('/proc/self/mountinfo'), '/'))
  } catch {
    return new RemotePaths([]) // without a mount list, no remote paths are known
  }
}

function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? '-' : `${stat.ino}:${stat.mtimeMs}`
}
