// The program that people use with a cluster, of a Debian that has a recent one.

import { spawnSync } from 'node:child_process'
import { unpackedPackages } from '../../tools/debian-packages.ts'

const root = unpackedPackages('kubectl', ['kubernetes-client'], { suite: 'trixie' })

export const withoutKubectl: string | false =
  root === undefined ? "kustomizations are built by Debian's kubernetes-client, which cannot be had" : false

export interface KubectlAnswer {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs it without any configuration of this user. */
export function kubectl(args: readonly string[], input = ''): KubectlAnswer {
  const env = { PATH: process.env.PATH, HOME: root, KUBECONFIG: `${root}/no-configuration` }
  const run = spawnSync(`${root}/usr/bin/kubectl`, args, { input, env, maxBuffer: 64 * 1024 * 1024 })
  return { status: run.status, stdout: String(run.stdout), stderr: String(run.stderr) }
}
