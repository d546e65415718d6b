// Programs of 64-bit ARM, run by QEMU's emulation of a user's process. It knows no system call bpf.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withoutArm64 } from '../../tools/package/arm64-compiler.ts'
import { startOf } from '../../tools/package/image-launcher.ts'
import { root } from '../../tools/package/release.ts'
import { onlyInSoak } from './soak.ts'

const emulator = 'qemu-aarch64-static'

export const withoutEmulation: string | false =
  onlyInSoak ||
  withoutArm64() ||
  (spawnSync(emulator, ['--version']).status === 0
    ? false
    : `programs of arm64 are run by ${emulator}, which is not there (Debian package qemu-user-static)`)

/** The command of svc in a root: the emulator starts no program by another, so the launcher's work is done here. */
export function svcCommand(image: string, args: readonly string[]): readonly [string, ...string[]] {
  const { flags } = startOf(readFileSync(join(root, 'bin/svc'), 'utf8'))
  const at = (path: string) => join(image, 'usr/lib/svc', path)
  return [emulator, '-L', image, at('runtime/bin/node'), ...flags, at('dist/svc.cjs'), ...args]
}

/** Runs a command of svc and returns what it printed and how it ended. */
export function runSvc(image: string, args: readonly string[]): { status: number | null; out: string } {
  const [command, ...rest] = svcCommand(image, args)
  const { status, stdout, stderr } = spawnSync(command, rest, { encoding: 'utf8', timeout: 120_000 })
  return { status, out: `${stdout}${stderr}` }
}

/** Starts a command of svc that stays. */
export function startSvc(image: string, args: readonly string[]): ChildProcess {
  const [command, ...rest] = svcCommand(image, args)
  return spawn(command, rest, { stdio: 'ignore' })
}
