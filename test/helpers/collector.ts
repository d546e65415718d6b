// What a collector reads from a tree of files, as lines of the page.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { TestContext } from 'node:test'
import type { Collector } from '../../src/collectors/collector.ts'
import { boundsOf } from '../../src/exposition/bounds.ts'
import { Gatherer } from '../../src/exposition/gatherer.ts'
import { Page } from '../../src/exposition/page.ts'
import { HostFiles } from '../../src/kernel/host.ts'
import type { Keys } from '../../src/schema/tree.ts'
import { silentLogger } from './silent-logger.ts'

/** The project's own host tree: `proc`, `sys`, `udev`, `rootfs`. */
export const hostTree = resolve(import.meta.dirname, '../fixtures/host')

export interface ReadResult {
  /** Lines of the page without HELP. */
  readonly lines: readonly string[]
  readonly outcome: string
  readonly reason: string
}

/** Runs a collector once on a tree (the project's own, unless said otherwise), with its default options and others. */
export async function readWith<K extends Keys>(
  unit: Collector<K>,
  options: Record<string, unknown> = {},
  root = hostTree,
): Promise<ReadResult> {
  const host = new HostFiles({
    procfs: join(root, 'proc'),
    sysfs: join(root, 'sys'),
    rootfs: join(root, 'rootfs'),
    udev: join(root, 'udev'),
  })
  const reader = unit.start({ ...defaultOptions(unit), ...options } as never, { host, log: silentLogger })
  const bounds = boundsOf({
    enabled: false,
    max_metrics: 0,
    include_metrics: [],
    exclude_metrics: [],
    drop_labels: [],
  })
  const page = new Page({ namespace: 'node', bounds })
  const gatherer = new Gatherer({
    collectors: [{ name: unit.name, reader }],
    page,
    log: silentLogger,
    maxWaiting: 1,
  })
  try {
    await gatherer.gather(gatherer.runs, 5000)
    const { text } = page.write(new Set(gatherer.runs))
    const { outcome, reason } = gatherer.runs[0]!
    const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('# HELP'))
    return { lines, outcome, reason }
  } finally {
    gatherer.close()
    host.close()
  }
}

function defaultOptions(unit: Collector<Keys>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(unit.options ?? {}).map(([name, leaf]) => [
      name,
      'default' in leaf ? leaf.default : undefined,
    ]),
  )
}

/** A tree of files for one test: path → content, relative to the tree (`proc/loadavg`). */
export function treeOf(t: TestContext, files: Readonly<Record<string, string | Uint8Array>>): string {
  const root = mkdtempSync(join(tmpdir(), 'svc-host-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  for (const name of ['proc', 'sys', 'rootfs', 'udev']) mkdirSync(join(root, name))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  return root
}

/** A copy of the project's tree that a test may change. */
export function copyOfTree(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'svc-host-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  cpSync(hostTree, root, { recursive: true, verbatimSymlinks: true })
  return root
}
