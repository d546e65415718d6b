// Programs of Debian's packages, unpacked and not installed: no service of them starts, and nothing of them runs but what
// a test starts. They need no libraries but those of every Debian.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { suiteOptions } from '../../tools/debian-mirror.ts'

const folder = resolve(import.meta.dirname, '../../build/peers')

export interface DebianProgram {
  readonly package: string
  /** Path in the package. */
  readonly path: string
  /** A newer suite of the mirror that this host has its packages from, for example `trixie`. Left out: its own. */
  readonly suite?: string
}

/** Path of a program. Brings its package where it is not there yet; undefined where it cannot be had. */
export function debianProgram(wanted: DebianProgram): string | undefined {
  const kept = join(folder, wanted.suite === undefined ? wanted.package : `${wanted.package}-${wanted.suite}`)
  const program = join(kept, wanted.path)
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  // Test files run side by side: each unpacks in a folder of its own, and one of them is kept.
  const own = mkdtempSync(`${kept}.`)
  try {
    const options = suiteOptions(own, wanted)
    if (options === undefined || !bring(wanted.package, options, own)) return undefined
    if (!existsSync(kept)) renameSync(join(own, 'root'), kept)
  } catch (error) {
    if (!existsSync(program)) throw error
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return existsSync(program) ? program : undefined
}

/** For `skip`: why a program is not there, false where it is. */
export function withoutProgram(path: string | undefined, name: string): string | false {
  return path === undefined
    ? `a comparison needs Debian's package ${name}, which apt-get cannot download here`
    : false
}

function bring(name: string, options: readonly string[], to: string): boolean {
  const root = ['-o', 'APT::Sandbox::User=root']
  spawnSync('apt-get', [...root, ...options, 'download', name], { cwd: to })
  const file = readdirSync(to).find(each => each.endsWith('.deb'))
  return file !== undefined && spawnSync('dpkg', ['-x', file, 'root'], { cwd: to }).status === 0
}
