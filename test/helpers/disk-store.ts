import { fstatSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '../../src/foundation/lib/logger.ts'
import { allOrderKeys, type Batch, plainBatch } from '../../src/foundation/model/batch.ts'
import type { Signal } from '../../src/foundation/model/signal.ts'
import type { BatchQueue, Entry } from '../../src/pipeline/batch-queue.ts'
import type { DiskQueue } from '../../src/pipeline/disk/disk-queue.ts'
import { type DiskStore, type DiskStoreOptions, openDiskStore } from '../../src/pipeline/disk/disk-store.ts'

export interface OpenStore {
  readonly store: DiskStore
  readonly directory: string
  /** Messages of the log, with their level. */
  readonly said: string[]
}

/** A directory for a queue, removed at the end of the test. */
export function queueDirectory(t: { after(end: () => void): void }): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-queue-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Opens a store whose lock is nobody's but for `lock`, and whose end waits for a disk that is slow. */
export function openStore(directory: string, options: Partial<DiskStoreOptions> = {}): OpenStore {
  const said: string[] = []
  const log = createLogger({
    level: 'debug',
    format: 'json',
    write: line => {
      const { level, msg, error } = JSON.parse(line)
      said.push(`${level}: ${msg}${error ? ` ${error}` : ''}`)
    },
  })
  const store = openDiskStore({
    directory,
    maxBytes: 100_000_000,
    fsyncMs: 200,
    closeMs: 60_000,
    lock: () => true,
    reserve: () => 0,
    log,
    ...options,
  })
  return { store, directory, said }
}

export interface OpenQueue extends OpenStore {
  readonly queue: DiskQueue
  /** Items by reason. */
  readonly drops: Record<string, number>
  /** The same, each drop by itself. */
  readonly dropped: { readonly reason: string; readonly items: number }[]
  readonly readied: () => number
}

/** A queue of traces in a store of its own. */
export function openQueue(
  directory: string,
  { memoryBytes = 10_000_000, ...options }: Partial<DiskStoreOptions> & { memoryBytes?: number } = {},
): OpenQueue {
  const opened = openStore(directory, options)
  return { ...opened, ...attach(opened.store, 'traces', memoryBytes) }
}

export function attach(store: DiskStore, signal: Signal, memoryBytes = 10_000_000) {
  const drops: Record<string, number> = {}
  const dropped: { reason: string; items: number }[] = []
  let readied = 0
  const queue = store.queue({
    signal,
    memoryBytes,
    dropped: (reason, items) => {
      dropped.push({ reason, items })
      drops[reason] = (drops[reason] ?? 0) + items
    },
    ready: () => readied++,
  })
  return { queue, drops, dropped, readied: () => readied }
}

/** A lock as flock(2) gives it, among the stores of this process: it is free when its descriptor is closed. */
export function lockTable(): (fd: number) => boolean {
  const held = new Map<string, number>()
  return fd => {
    const place = ({ dev, ino }: { dev: number; ino: number }) => `${dev}:${ino}`
    const mine = place(fstatSync(fd))
    const holder = held.get(mine)
    if (holder !== undefined && holder !== fd && isOpenAt(holder, mine, place)) return false
    held.set(mine, fd)
    return true
  }
}

function isOpenAt(
  fd: number,
  where: string,
  place: (stats: { dev: number; ino: number }) => string,
): boolean {
  try {
    return place(fstatSync(fd)) === where
  } catch {
    return false
  }
}

/** A batch whose body begins with its items as digits, so that a wrong body is found out. */
export function numbered(
  items: number,
  bytes = 100,
  orderKeys = allOrderKeys,
  signal: Signal = 'traces',
): Batch {
  return plainBatch(signal, items, Buffer.alloc(bytes, `${items} `), orderKeys)
}

/** The items that the body of a batch tells. */
export function itemCount({ batch }: Entry): number {
  return Number.parseInt(Buffer.from(batch.body).toString('latin1', 0, 12), 10)
}

/** Takes and delivers all that can be taken one after the other; the items of each in order. */
export function drain(queue: BatchQueue): number[] {
  const items: number[] = []
  for (let entry = queue.take(); entry; entry = queue.take()) {
    items.push(itemCount(entry))
    queue.settle(entry)
  }
  return items
}

/** Waits until something holds, 20 s at most. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  for (const end = Date.now() + 20_000; !holds(); ) {
    if (Date.now() > end) throw new Error(`waited 20 s in vain until ${what}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
