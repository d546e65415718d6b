// What is packaged: version, time, and processors.

import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { output } from './command.ts'

/** The root of the sources. */
export const root = resolve(import.meta.dirname, '../..')

/** A processor, by Node's name. */
export type Architecture = 'x64' | 'arm64'

interface Names {
  readonly debian: string
  readonly rpm: string
  /** Name in Debian's library directories, and of its cross tools. */
  readonly triplet: string
}

export const names: Readonly<Record<Architecture, Names>> = {
  x64: { debian: 'amd64', rpm: 'x86_64', triplet: 'x86_64-linux-gnu' },
  arm64: { debian: 'arm64', rpm: 'aarch64', triplet: 'aarch64-linux-gnu' },
}

export interface Manifest {
  readonly version: string
  readonly description: string
  readonly license: string
}

export function manifest(): Manifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
}

/** A version as ordered by dpkg and rpm: prereleases sort before their release. */
export function packageVersion(version: string): string {
  return version.replace('-', '~').replaceAll('-', '.')
}

/** Time of everything in a package, in seconds since 1970: $SOURCE_DATE_EPOCH, otherwise that of the commit. */
export function sourceEpoch(): number {
  const given = process.env.SOURCE_DATE_EPOCH
  if (given !== undefined && !/^\d{1,10}$/.test(given))
    throw new Error(`SOURCE_DATE_EPOCH must be seconds since 1970, and is "${given}"`)
  return Number(given ?? commitTime())
}

function commitTime(): string {
  try {
    return output('git', ['log', '-1', '--format=%ct'], { cwd: root })
  } catch (cause) {
    throw new Error('there is no commit whose time packages could bear: set SOURCE_DATE_EPOCH', { cause })
  }
}

/** The same as ISO 8601 in UTC. */
export function timeText(epoch: number): string {
  return new Date(epoch * 1000).toISOString().replace('.000Z', 'Z')
}

/** Name of an archive without its suffix. */
export function archiveName(version: string, architecture: Architecture): string {
  return `svc-${version}-linux-${architecture}`
}
