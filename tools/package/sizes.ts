// Installed size of a package, and its largest parts.

import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { programDirectory } from './system-files.ts'
import type { StagedPackage } from './write.ts'

const kinds: readonly (readonly [what: string, path: RegExp])[] = [
  ['the runtime', /^runtime\//],
  ['BPF objects', /\.bpf\.o$/],
  ['the addon and its libraries', /^dist\/(svc\.node|lib)/],
  ['the probe and the decoder', /^dist\/svc-(probe|decode)$/],
  ['bundles', /\.cjs$/],
  ['the page', /^dist\/ui\//],
]

/** One line for the total, and one for each kind, in MB of a million bytes. */
export function sizesText({ root, paths }: StagedPackage): string[] {
  const sums = new Map<string, number>()
  for (const path of paths) {
    const within = path.startsWith(`${programDirectory}/`) ? path.slice(programDirectory.length + 1) : ''
    const what = kinds.find(([, pattern]) => pattern.test(within))?.[0] ?? 'all else'
    sums.set(what, (sums.get(what) ?? 0) + lstatSync(join(root, path)).size)
  }
  const total = [...sums.values()].reduce((sum, each) => sum + each, 0)
  const shown = [...sums].sort(([, a], [, b]) => b - a)
  return [`installed: ${megabytes(total)}`, ...shown.map(([what, bytes]) => `  ${what}: ${megabytes(bytes)}`)]
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
