// Third-party parts of a package: the single list for its bill of materials and its licences.

import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { installedVersion, type Library } from './libraries.ts'
import { names } from './release.ts'
import type { Tree } from './stage.ts'

export interface ForeignPart {
  readonly name: string
  readonly version: string
  /** SPDX expression. */
  readonly licence: string
  /** Package URL: its identity in vulnerability databases. */
  readonly purl: string
  /** Path in the program directory. */
  readonly within: string
  readonly hash?: { readonly alg: 'SHA-256' | 'SHA-512'; readonly content: string }
  /** Its own components, by name and version. */
  readonly parts?: Readonly<Record<string, string>>
  /** Licence text. */
  readonly text: string
}

/** By Debian package: licence, and the file of svc that it is linked into, unless it is a separate file. */
const ofDebian: Readonly<Record<string, { licence: string; within?: string }>> = {
  libbpf1: { licence: 'LGPL-2.1-only OR BSD-2-Clause' },
  libelf1: { licence: 'LGPL-3.0-or-later OR GPL-2.0-or-later' },
  libelf1t64: { licence: 'LGPL-3.0-or-later OR GPL-2.0-or-later' },
  libzstd1: { licence: 'BSD-3-Clause OR GPL-2.0-only' },
  zlib1g: { licence: 'Zlib' },
  'libiberty-dev': { licence: 'LGPL-2.0-or-later', within: 'dist/svc-decode' },
  'liblzma-dev': { licence: 'LicenseRef-Public-Domain', within: 'dist/svc-decode' },
  'libc6-dev': { licence: 'LGPL-2.1-or-later', within: 'dist/svc-probe' },
}

/** All of them, ordered by kind and name. */
export function foreignParts(tree: Tree): ForeignPart[] {
  const linked = ['libiberty-dev', 'liblzma-dev', 'libc6-dev'].map(name => installed(name))
  return [
    runtime(tree),
    ...[...tree.libraries, ...linked].map(library => debianPart(library, tree)),
    ...tree.npm.map(
      ({ name, version, licence, sha512, within, text }): ForeignPart => ({
        name,
        version,
        licence,
        purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
        within,
        ...(sha512 !== '' && { hash: { alg: 'SHA-512', content: sha512 } }),
        text,
      }),
    ),
  ]
}

function runtime({ node, directory }: Tree): ForeignPart {
  // The runtime itself, and interface numbers.
  const noPart = /^(node|modules|napi)$/
  // The components of the running runtime are those of the shipped one if the versions are equal.
  const same = process.versions.node === node.version
  const parts = Object.entries(process.versions).filter(([name, its]) => same && its && !noPart.test(name))
  return {
    name: 'node',
    version: node.version,
    licence: 'MIT',
    purl: `pkg:generic/node@${node.version}`,
    within: 'runtime/bin/node',
    hash: sha256(join(directory, 'runtime/bin/node')),
    parts: Object.fromEntries(parts.map(([name, version]) => [name, version ?? ''])),
    text: node.licence,
  }
}

/** Not in the list of shipped libraries, because it is linked into a file of svc. */
type Linked = Omit<Library, 'name'>

function installed(name: string): Linked {
  return {
    file: '',
    package: name,
    version: installedVersion(name),
  }
}

function debianPart(library: Library | Linked, { architecture, directory }: Tree): ForeignPart {
  const { package: name, version, file } = library
  const known = ofDebian[name]
  if (known === undefined)
    throw new Error(`unknown licence of Debian's ${name}: add it to tools/package/foreign-parts.ts`)
  const within = 'name' in library ? `dist/${library.name}` : (known.within ?? '')
  const encoded = encodeURIComponent(version)
  return {
    name,
    version,
    licence: known.licence,
    purl: `pkg:deb/debian/${name}@${encoded}?arch=${names[architecture].debian}`,
    within,
    ...('name' in library && { hash: sha256(join(directory, within)) }),
    text: copyrightOf(name, file),
  }
}

function sha256(file: string): { alg: 'SHA-256'; content: string } {
  return { alg: 'SHA-256', content: createHash('sha256').update(readFileSync(file)).digest('hex') }
}

/** Debian's copyright file of a package, from the tree that has its library. */
function copyrightOf(name: string, file: string): string {
  const [from = '/'] = file === '' ? [] : [dirname(file).replace(/\/usr\/lib\/.*|\/lib\/.*/, '/')]
  const text = [from, '/']
    .map(each => join(each, 'usr/share/doc', name, 'copyright'))
    .find(each => existsSync(each))
  if (text === undefined) throw new Error(`cannot find the copyright file of Debian's ${name} below ${from}`)
  return readFileSync(text, 'utf8').trim()
}
