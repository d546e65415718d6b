// Debian packages with all dependencies, unpacked and not installed: nothing of them runs unless a test starts it.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Suite, suiteOptions } from './debian-mirror.ts'

const folder = resolve(import.meta.dirname, '../build/peers')

/** The root of the unpacked packages, created once for each list of them; undefined if they are unavailable. */
export function unpackedPackages(
  name: string,
  packages: readonly string[],
  from: Suite = {},
): string | undefined {
  const wanted = [...packages, from.suite, from.architecture].filter(each => each !== undefined)
  const list = createHash('sha256').update(wanted.join()).digest('hex').slice(0, 8)
  const kept = join(folder, `${name}-${list}`)
  if (existsSync(kept)) return kept
  mkdirSync(folder, { recursive: true })
  // The first process wins.
  const own = mkdtempSync(join(folder, `${name}.`))
  try {
    const root = join(own, 'root')
    const options = suiteOptions(own, from)
    if (options === undefined || !download(join(own, 'packages'), packages, options)) return undefined
    if (!unpack(join(own, 'packages'), root)) return undefined
    if (!existsSync(kept)) renameSync(root, kept)
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return kept
}

/** Only downloads. With an empty list of installed packages, apt omits none. */
function download(to: string, packages: readonly string[], options: readonly string[]): boolean {
  mkdirSync(join(to, 'partial'), { recursive: true })
  const settings = {
    'APT::Sandbox::User': 'root',
    'APT::Install-Recommends': 'false',
    'Debug::NoLocking': 'true',
    'Dir::Cache::archives': to,
    'Dir::State::status': '/dev/null',
  }
  const set = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])
  return (
    spawnSync('apt-get', [...options, ...set, '-y', '--download-only', 'install', ...packages]).status === 0
  )
}

function unpack(from: string, root: string): boolean {
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
    mkdirSync(join(root, 'usr', name), { recursive: true })
    symlinkSync(join('usr', name), join(root, name))
  }
  const script = 'set -o pipefail; dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"'
  return readdirSync(from)
    .filter(name => name.endsWith('.deb'))
    .every(name => spawnSync('bash', ['-c', script, '-', join(from, name), root]).status === 0)
}
