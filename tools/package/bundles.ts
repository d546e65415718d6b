// The bundles of a package, with the npm packages they include.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Metafile } from 'esbuild'
import { bundleOptions, programs } from '../bundle-options.ts'
import { output } from './command.ts'
import { root, timeText } from './release.ts'

/** An npm package in a bundle. */
export interface NpmPackage {
  readonly name: string
  readonly version: string
  readonly licence: string
  /** The bundles that include it. */
  readonly within: string
  /** SHA-512 of its archive in the registry, in hexadecimal digits; '' if unknown. */
  readonly sha512: string
  /** Licence text. */
  readonly text: string
}

/** Writes the programs into `directory`, without maps. Returns the npm packages included in them and in the page. */
export async function writeBundles(directory: string, version: string, epoch: number): Promise<NpmPackage[]> {
  const about = { version, commit: commit(), built: timeText(epoch) }
  const places = new Map<string, string[]>()
  const note = (bundle: string, { inputs }: Metafile) => {
    const own = Object.keys(inputs).map(input => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0])
    for (const place of new Set(own))
      if (place !== undefined) places.set(place, [...(places.get(place) ?? []), bundle])
  }
  for (const [entry, name] of programs) {
    const { metafile } = await build({
      ...bundleOptions,
      absWorkingDir: root,
      entryPoints: [entry],
      outfile: join(directory, name),
      sourcemap: false,
      metafile: true,
      define: { 'import.meta.dirname': '__dirname', SVC_BUILD: JSON.stringify(about) },
    })
    note(`dist/${name}`, metafile)
  }
  note('dist/ui', await pageInputs())
  return npmPackages(places)
}

/** The inputs of the page; tools/bundle-ui.ts writes it. */
async function pageInputs(): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['ui/main.tsx'],
    outdir: 'dist/ui',
    bundle: true,
    splitting: true,
    format: 'esm',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    metafile: true,
    write: false,
  })
  return metafile
}

function npmPackages(places: ReadonlyMap<string, readonly string[]>): NpmPackage[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  return [...places.keys()].sort().map(place => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(root, place, 'package.json'), 'utf8'),
    ) as { name: string; version: string; license: string }
    const [, hash] = /^sha512-(.+)$/.exec(packages[place]?.integrity ?? '') ?? []
    const sha512 = Buffer.from(hash ?? '', 'base64').toString('hex')
    const within = places.get(place)!.join(', ')
    return { name, version, licence: license, within, sha512, text: licenceText(join(root, place)) }
  })
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly integrity?: string }>>
}

function licenceText(place: string): string {
  for (const name of ['LICENSE', 'LICENSE.md', 'LICENCE', 'license'])
    try {
      return readFileSync(join(place, name), 'utf8').trim()
    } catch {
      // Has another name.
    }
  throw new Error(`cannot find the licence of the npm package in ${place}`)
}

function commit(): string {
  try {
    return output('git', ['rev-parse', '--short', 'HEAD'], { cwd: root }).trim()
  } catch {
    return 'unknown' // a source archive without .git
  }
}
