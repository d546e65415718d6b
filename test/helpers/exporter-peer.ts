// Debian's package of the exporter that the system-metrics endpoint replaces: unpacked, not installed, so nothing of it
// runs but what a test starts.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'

const folder = resolve(import.meta.dirname, '../../build/peers')
const name = 'prometheus-node-exporter'

/** Path of the program. Brings it where it is not there yet; undefined where it cannot be had. */
function find(): string | undefined {
  const unpacked = join(folder, name)
  const program = join(unpacked, 'usr/bin', name)
  if (existsSync(program)) return program
  // Test files run side by side: each unpacks in a folder of its own, and one of them is kept.
  const own = join(folder, `${name}.${process.pid}`)
  mkdirSync(own, { recursive: true })
  try {
    spawnSync('apt-get', ['-o', 'APT::Sandbox::User=root', 'download', name], { cwd: own })
    const file = readdirSync(own).find(each => each.endsWith('.deb'))
    if (file === undefined || spawnSync('dpkg', ['-x', file, 'root'], { cwd: own }).status !== 0)
      return undefined
    if (!existsSync(program)) renameSync(join(own, 'root'), unpacked)
  } catch (error) {
    if (!existsSync(program)) throw error
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return existsSync(program) ? program : undefined
}

export const exporterProgram = find() ?? ''
export const withoutExporter: string | false =
  exporterProgram === ''
    ? `a comparison needs Debian's package ${name}, which apt-get cannot download here`
    : false
