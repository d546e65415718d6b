// The dependencies of programs and libraries, by readelf(1) for any processor.

import { output } from './command.ts'

/** Names of the libraries that a file is linked to. */
export function neededLibraries(file: string): string[] {
  return [...dynamicSection(file).matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, name]) => name!)
}

/** Search path for the libraries of a file, and theirs in turn; '' if it has none. */
export function inheritedLibraryPath(file: string): string {
  return /\(RPATH\).*\[(.+)\]/.exec(dynamicSection(file))?.[1] ?? ''
}

/** The newest version among the symbols `PREFIX_1.2.3` required by the files, for example `2.34` of `GLIBC`. */
export function newestSymbols(files: readonly string[], prefix: string): string {
  const asked = files.flatMap(file =>
    [...output('readelf', ['-W', '-V', file]).matchAll(/Name: ([A-Z]+)_([\d.]+)/g)].filter(
      ([, name]) => name === prefix,
    ),
  )
  const versions = asked.map(([, , version]) => version!)
  return versions.reduce((newest, each) => (isNewer(each, newest) ? each : newest), '0')
}

function isNewer(one: string, other: string): boolean {
  const [a, b] = [one.split('.').map(Number), other.split('.').map(Number)]
  for (let i = 0; i < Math.max(a.length, b.length); i++)
    if ((a[i] ?? 0) !== (b[i] ?? 0)) return (a[i] ?? 0) > (b[i] ?? 0)
  return false
}

function dynamicSection(file: string): string {
  return output('readelf', ['-W', '-d', file])
}
