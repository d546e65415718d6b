// Shared libraries that go with the addon, so that a host needs none but those of every Linux.

import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { output } from './command.ts'
import { neededLibraries } from './elf.ts'
import { type Architecture, names } from './release.ts'

/** What every host of the runtime has: the C library and those of the C++ compiler. */
const ofTheHost = /^(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libstdc\+\+\.|libgcc_s\.)/

/** A library that is shipped. */
export interface Library {
  /** `libbpf.so.1`. */
  readonly name: string
  readonly file: string
  /** Debian's package that it is from, with its version. */
  readonly package: string
  readonly version: string
}

interface Place {
  /** Where Debian's files for that processor lie; left out: on this host. */
  readonly from?: string | undefined
  readonly architecture: Architecture
}

/** The libraries that a file needs beside those of the host, and that they need in turn. */
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

/** Of a file that dpkg installed. Files may be known by the path that they had before /usr was merged. */
function installedPackage(file: string): { package: string; version: string } {
  const places = [file, file.replace(/^\/usr/, '')]
  const owner = places.map(ownerOf).find(each => each !== undefined)
  if (owner === undefined)
    throw new Error(`no Debian package has ${file}: its version and licence are not known`)
  const version = installedVersion(owner)
  return { package: owner.replace(/:.*/, ''), version }
}

/** Version of a package of Debian that is installed. */
export function installedVersion(name: string): string {
  const [, version] = output('dpkg-query', ['--show', name]).trim().split('\t')
  return version ?? ''
}

function ownerOf(path: string): string | undefined {
  try {
    return /^(\S+): /.exec(output('dpkg-query', ['--search', path]))?.[1]
  } catch {
    return undefined // known by another path
  }
}

/** Of a library that was unpacked and not installed: its package is called after it, and bears its changes. */
function unpackedPackage(name: string, from: string): { package: string; version: string } {
  const called = name.replace(/\.so\./, '').replace(/^libz(?=\d)/, 'zlib')
  const documents = join(from, 'usr/share/doc')
  const folder = readdirSync(documents).find(each => each === called || each === `${called}g`)
  const changes = ['changelog.Debian.gz', 'changelog.gz'].map(each => join(documents, folder ?? called, each))
  const file = changes.find(each => existsSync(each))
  const version = file && /^\S+ \(([^)]+)\)/.exec(gunzipSync(readFileSync(file)).toString())?.[1]
  if (folder === undefined || version === undefined)
    throw new Error(`cannot determine the version of ${name}: ${documents} has nothing of its package`)
  return { package: folder, version }
}
