// Runs svc of this tree as a pod's container runs it: the volumes, the user's rights, the namespaces and the read-only
// root of its manifest. The container's own files are the directories of programs and libraries of this host.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { capabilitiesOf } from '../../src/kernel/capabilities.ts'
import type { KubeObject } from './helm-objects.ts'

const tree = resolve(import.meta.dirname, '../..')
const programs = ['bin', 'lib', 'lib64', 'sbin', 'usr']

export interface PodOptions {
  readonly spec: KubeObject['spec']
  /** Text of its ConfigMap. */
  readonly config: string
  /** Scratch; what is written to the volume `state` is found in `state` below it. */
  readonly directory: string
  /** What it runs, for the shell; `svc` is in the PATH. */
  readonly command: string
  /** Files of each Secret that it mounts. */
  readonly secrets?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** Begins to run it, in namespaces of its own that end with it. */
export function runAsPod({ spec, config, directory, command, secrets = {} }: PodOptions): ChildProcess {
  const container = spec.containers[0]
  const at = (path: string) => join(directory, 'root', path)
  for (const name of ['root', 'state', 'config']) mkdirSync(join(directory, name), { recursive: true })
  writeFileSync(join(directory, 'config/config.yaml'), config)
  for (const [name, files] of Object.entries(secrets)) {
    mkdirSync(join(directory, 'secrets', name), { recursive: true })
    for (const [file, text] of Object.entries(files))
      writeFileSync(join(directory, 'secrets', name, file), text)
  }
  const lines = [
    'set -e',
    'mount --make-rprivate /',
    `mount -t tmpfs none ${at('')}`,
    `mkdir -p ${at('proc')} ${at('dev')} ${at('sys')} ${at('tmp')} ${at(tree)}`,
    // Links, as /bin is, stay links.
    ...programs.map(
      name =>
        `if [ -L /${name} ]; then cp -P /${name} ${at(name)}; elif [ -d /${name} ]; then mkdir ${at(name)}; mount --bind /${name} ${at(name)}; fi`,
    ),
    `mount --bind ${tree} ${at(tree)}`,
    `mount -t proc proc ${at('proc')}`,
    `mount -t sysfs sysfs ${at('sys')}`,
    `mount --rbind /dev ${at('dev')}`,
    ...container.volumeMounts.flatMap(({ name, mountPath, readOnly }: KubeObject) => {
      const volume = spec.volumes.find((each: KubeObject) => each.name === name)
      const { configMap, hostPath, secret } = volume
      const made = configMap ? 'config' : secret && `secrets/${secret.secretName}`
      const source = made ? join(directory, made) : hostPath?.path
      const place = at(mountPath)
      const from = name === 'state' ? join(directory, 'state') : source
      const mount = from === undefined ? `mount -t tmpfs none ${place}` : `mount --rbind ${from} ${place}`
      return [`mkdir -p ${place}`, mount, ...(readOnly ? [`mount -o remount,bind,ro ${place}`] : [])]
    }),
    `mount -o remount,ro ${at('')}`,
    'ip link set lo up',
    'hostname svc-x7k2p',
    `exec chroot ${at('')} setpriv ${rightsOf(container.securityContext)} sh -c ${quoted(command)}`,
  ]
  const own = ['-m', '-C', '-u', ...(spec.hostNetwork ? [] : ['-n']), ...(spec.hostPID ? [] : ['-p', '-f'])]
  const env = Object.fromEntries(
    container.env.map(({ name, value = 'node-a' }: KubeObject) => [name, value] as const),
  )
  return spawn('unshare', [...own, 'sh', '-c', lines.join('\n')], {
    env: { PATH: `${tree}/bin:/usr/sbin:/usr/bin:/sbin:/bin`, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
}

/** Ends all of it at once. */
export function killPod({ pid }: ChildProcess): void {
  // It leads the group of what it started.
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

/** setpriv(1) of Debian 12 knows newer capabilities by their number alone. */
function rightsOf({ capabilities, allowPrivilegeEscalation }: KubeObject): string {
  const named = (capabilities.add as string[]).map(name => `+cap_${numberOf(name)}`)
  return `${allowPrivilegeEscalation ? '' : '--no-new-privs '}--bounding-set=${['-all', ...named].join()}`
}

function numberOf(capability: string): number {
  for (let bit = 0; bit < 64; bit++)
    if ([...capabilitiesOf((1n << BigInt(bit)).toString(16))].some(name => name === capability)) return bit
  throw new Error(`the program knows no capability ${capability}`)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
