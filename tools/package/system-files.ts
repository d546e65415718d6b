// Files that packages install besides the program directory, by path.

import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { bash, fish, zsh } from '../../src/program/cli/completion/scripts.ts'
import { commands } from '../../src/program/cli/index.ts'
import { configurationFile } from './configuration-file.ts'
import { copyright } from './copyright.ts'
import { foreignParts } from './foreign-parts.ts'
import { manPage } from './man-page.ts'
import { root } from './release.ts'
import { billOfMaterials } from './sbom.ts'
import type { Tree } from './stage.ts'

/** Path of the program directory on a host with the package. */
export const programDirectory = '/usr/lib/svc'

/** Kept by an upgrade as the administrator wrote it. */
export const configuration = '/etc/svc/config.yaml'

/** Contents by path. */
export type SystemFiles = ReadonlyMap<string, string | Uint8Array>

export const paths = {
  user: '/usr/lib/sysusers.d/svc.conf',
  sysctl: '/usr/lib/sysctl.d/05-svc.conf',
  manPage: '/usr/share/man/man1/svc.1.gz',
  zsh: '/usr/share/zsh/vendor-completions/_svc',
  copyright: '/usr/share/doc/svc/copyright',
  bill: '/usr/share/doc/svc/sbom.cdx.json',
} as const

export function systemFiles(tree: Tree): SystemFiles {
  const parts = foreignParts(tree)
  return new Map<string, string | Uint8Array>([
    [configuration, configurationFile()],
    ...deployed(),
    [paths.manPage, packed(manPage(tree.version, tree.epoch))],
    ['/usr/share/bash-completion/completions/svc', bash(commands)],
    [paths.zsh, zsh(commands)],
    ['/usr/share/fish/vendor_completions.d/svc.fish', fish(commands)],
    [paths.copyright, copyright(parts)],
    [paths.bill, billOfMaterials(tree, parts)],
  ])
}

/** Writes them below a root, with the link that puts the command in the path. */
export function writeSystemFiles(directory: string, files: SystemFiles): void {
  for (const [path, content] of files) {
    const file = join(directory, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
  mkdirSync(join(directory, 'usr/bin'), { recursive: true })
  symlinkSync('../lib/svc/bin/svc', join(directory, 'usr/bin/svc'))
}

/** Output of tools/deploy/systemd.ts: units, user, and examples for the administrator. */
function deployed(): [string, string][] {
  const directory = join(root, 'deploy/systemd')
  return readdirSync(directory)
    .sort()
    .map(name => [placeOf(name), readFileSync(join(directory, name), 'utf8')])
}

function placeOf(name: string): string {
  if (name.endsWith('.service')) return `/usr/lib/systemd/system/${name}`
  if (name === 'svc.sysusers.conf') return paths.user
  if (name === 'svc.sysctl.conf') return paths.sysctl
  if (name.endsWith('.example')) return `/usr/share/doc/svc/examples/${name.replace(/\.example$/, '')}`
  throw new Error(
    `unknown place of deploy/systemd/${name} on a host: add it to tools/package/system-files.ts`,
  )
}

/** gzip writes no name and no time, but byte 9 names the operating system. */
function packed(text: string): Uint8Array {
  const bytes = gzipSync(text, { level: 9 })
  bytes[9] = 3
  return bytes
}
