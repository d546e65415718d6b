// Shared libraries shipped with the addon, so that a host needs only those of every Linux.

import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { output } from './command.ts'
import { neededLibraries } from './elf.ts'
import { type Architecture, names } from './release.ts'

/** Present on every host of the runtime: the C library and the C++ compiler's libraries. */
const ofTheHost = /^(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libstdc\+\+\.|libgcc_s\.)/

/** A shipped library. */
export interface Library {
  /** `libbpf.so.1`. */
  readonly name: string
  readonly file: string
  /** Its Debian package, with version. */
  readonly package: string
  readonly version: string
}

interface Place {
  /** Root of Debian's files for that processor; if absent, this host. */
  readonly from?: string | undefined
  readonly architecture: Architecture
}

/** The libraries that a file needs besides those of the host, with their dependencies. */
export function bundledLibraries(file: string, place: Place): Library[] {
  const found = new Map<string, Library>()
  const visit = (each: string) => {
    for (const name of neededLibraries(each)) {
      if (ofTheHost.test(name) || found.has(name)) continue
      const library = libraryOf(name, place)
      found.set(name, library)
      visit(library.file)
    }
  }
  visit(file)
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function libraryOf(name: string, { from = '/', architecture }: Place): Library {
  const { triplet } = names[architecture]
  const directories = [`usr/lib/${triplet}`, `lib/${triplet}`].map(each => join(from, each))
  const directory = directories.find(each => existsSync(join(each, name)))
  if (directory === undefined) throw new Error(`cannot find ${name} in ${directories.join(' or ')}`)
  const file = realpathSync(join(directory, name))
  return { name, file, ...(from === '/' ? installedPackage(file) : unpackedPackage(name, from)) }
}

/** The package of a file installed by dpkg, which may list it by its path before the /usr merge. */
function installedPackage(file: string): { package: string; version: string } {
  const places = [file, file.replace(/^\/usr/, '')]
  const owner = places.map(ownerOf).find(each => each !== undefined)
  if (owner === undefined)
    throw new Error(`no Debian package has ${file}: its version and licence are not known`)
  const version = installedVersion(owner)
  return { package: owner.replace(/:.*/, ''), version }
}

/** Version of an installed Debian package. */
export function installedVersion(name: string): string {
  const [, version] = output('dpkg-query', ['--show', name]).trim().split('\t')
  return version ?? ''
}

function ownerOf(path: string): string | undefined {
  try {
    return /^(\S+): /.exec(output('dpkg-query', ['--search', path]))?.[1]
  } catch {
    return undefined // listed by another path
  }
}

/** The package of an unpacked library: named after it, with its changelog. */
function unpackedPackage(name: string, from: string): { package: string; version: string } {
  const called = name.replace(/\.so\./, '').replace(/^libz(?=\d)/, 'zlib')
  const documents = join(from, 'usr/share/doc')
  const folder = readdirSync(documents).find(each => each === called || each === `${called}g`)
  const changes = ['changelog.Debian.gz', 'changelog.gz'].map(each => join(documents, folder ?? called, each))
  const file = changes.find(each => existsSync(each))
  const version = file && /^\S+ \(([^)]+)\)/.exec(gunzipSync(readFileSync(file)).toString())?.[1]
  if (folder === undefined || version === undefined)
    throw new Error(`cannot determine the version of ${name}: ${documents} does not list its package`)
  return { package: folder, version }
}
