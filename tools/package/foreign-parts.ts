// What a package holds that others wrote: the one list behind its bill of materials and its licences.

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
  /** Package URL: who it is to those who list vulnerabilities. */
  readonly purl: string
  /** Where it lies in the program directory. */
  readonly within: string
  readonly hash?: { readonly alg: 'SHA-256' | 'SHA-512'; readonly content: string }
  /** What it is made of in turn, by name and version. */
  readonly parts?: Readonly<Record<string, string>>
  /** Text of its licence. */
  readonly text: string
}

/** By Debian's package: licence, and where it is linked into a file of ours instead of lying beside it. */
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

/** All of them, in the order of their kinds and names. */
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
  // Itself, and numbers of its interfaces.
  const noPart = /^(node|modules|napi)$/
  // Those of the runtime that runs this are those of the one that is shipped where both are one version.
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

/** What is linked into a file of ours is not in the list of shipped libraries. */
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

/** What Debian says of a package, from the tree that its library lies in. */
function copyrightOf(name: string, file: string): string {
  const [from = '/'] = file === '' ? [] : [dirname(file).replace(/\/usr\/lib\/.*|\/lib\/.*/, '/')]
  const text = [from, '/']
    .map(each => join(each, 'usr/share/doc', name, 'copyright'))
    .find(each => existsSync(each))
  if (text === undefined) throw new Error(`cannot find the copyright file of Debian's ${name} below ${from}`)
  return readFileSync(text, 'utf8').trim()
}
