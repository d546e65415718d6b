// Programs of Debian's packages, unpacked and not installed: no service of them starts, and nothing of them runs but what
// a test starts. They need no libraries but those of every Debian.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

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
    const options = wanted.suite === undefined ? [] : suiteOptions(own, wanted.suite)
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

/** What makes apt know another suite and nothing else, in lists of its own; undefined where there is no mirror. */
function suiteOptions(to: string, suite: string): string[] | undefined {
  const mirror = ownMirror()
  if (mirror === undefined) return undefined
  const at = (...names: string[]) => join(to, ...names)
  mkdirSync(at('lists', 'partial'), { recursive: true })
  mkdirSync(at('cache'))
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg'
  writeFileSync(at('sources.list'), `deb [signed-by=${keys}] ${mirror} ${suite} main\n`)
  const settings = {
    'Dir::Etc::SourceList': at('sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Lists': at('lists'),
    'Dir::Cache': at('cache'),
    'APT::Sandbox::User': 'root',
    'Debug::NoLocking': 'true',
  }
  const options = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])
  return spawnSync('apt-get', [...options, 'update', '-qq']).status === 0 ? options : undefined
}

/** Where this host has Debian itself from. */
function ownMirror(): string | undefined {
  const { stdout } = spawnSync('apt-get', ['indextargets', '--format', '$(LABEL) $(SUITE) $(REPO_URI)'], {
    encoding: 'utf8',
  })
  const lines = (stdout ?? '').split('\n').map(line => line.split(' '))
  return lines.find(
    ([label, suite]) => label === 'Debian' && suite !== undefined && !suite.includes('-'),
  )?.[2]
}
