// What a collector reads from a tree of files, as lines of the page.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { TestContext } from 'node:test'
import type { Keys } from '../../src/foundation/schema/tree.ts'
import { HostFiles } from '../../src/kernel/host.ts'
import type { Collector } from '../../src/signals/metrics/collectors/collector.ts'
import { boundsOf } from '../../src/signals/metrics/exposition/bounds.ts'
import { Gatherer } from '../../src/signals/metrics/exposition/gatherer.ts'
import { Page } from '../../src/signals/metrics/exposition/page.ts'
import { hostPages } from '../../tools/testing/reached.ts'
import { silentLogger } from './silent-logger.ts'

/** The project's own host tree: `proc`, `sys`, `udev`, `rootfs`. */
export const hostTree = resolve(import.meta.dirname, '../fixtures/host')

export interface ReadResult {
  /** Lines of the page without HELP. */
  readonly lines: readonly string[]
  readonly outcome: string
  readonly reason: string
}

/**
 * Runs a collector on a tree (the project's own, unless said otherwise), with its default options and others. With
 * `between` it is read twice, and the second reading counts.
 */
export async function readWith<K extends Keys>(
  unit: Collector<K>,
  options: Record<string, unknown> = {},
  root = hostTree,
  between?: () => Promise<void>,
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
    if (between) {
      await between()
      await gatherer.gather(gatherer.runs, 5000)
    }
    const { text } = page.write(new Set(gatherer.runs))
    const { outcome, reason } = gatherer.runs[0]!
    const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('# HELP'))
    hostPages.publish(text)
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

/**
 * Replaces each of the files in turn by what no kernel writes, and holds the collector to it: it ends, in time, its
 * readings are numbers, and it is not called a success over nothing but junk unless `mayIgnore` says that it may.
 */
export async function survivesJunk<K extends Keys>(
  t: TestContext,
  unit: Collector<K>,
  files: readonly string[],
  options: Record<string, unknown> = {},
  mayIgnore = false,
): Promise<void> {
  const root = copyOfTree(t)
  for (const path of files) {
    const file = join(root, path)
    const good = readFileSync(file)
    for (const [what, content] of junk(good)) {
      rmSync(file)
      writeFileSync(file, content)
      const started = performance.now()
      const { lines, outcome } = await readWith(unit, options, root)
      const where = `${unit.name}: ${path} ${what}`
      if (performance.now() - started > 5000) throw new Error(`${where} took too long`)
      if (lines.some(line => / NaN$|undefined|\[object/.test(line)))
        throw new Error(`${where} gave ${lines.join('\n')}`)
      if (outcome === 'success' && what !== 'truncated' && !mayIgnore)
        throw new Error(`${where} was a success`)
    }
    writeFileSync(file, good)
  }
}

function junk(good: Buffer): readonly (readonly [what: string, content: Buffer])[] {
  const noise = Buffer.alloc(1024 * 1024)
  for (let i = 0, state = 1; i < noise.length; i++) {
    state = (state * 1103515245 + 12345) % 2147483648
    noise[i] = state >> 16
  }
  return [
    ['empty', Buffer.alloc(0)],
    ['truncated', good.subarray(0, Math.ceil(good.length / 2) - 1)],
    ['binary', noise.subarray(0, 4096)],
    ['junk of 1 MiB', noise],
    ['a number of 1 MiB', Buffer.from(`${'7'.repeat(1024 * 1024)}x`)],
    ['a line of 1 MiB', Buffer.alloc(1024 * 1024, 'x ')],
  ]
}
