// Numbered log records on their way through the agent's own pipeline, and the books that a test keeps of them.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, loadConfig } from '../../src/config/index.ts'
import { LogRecord } from '../../src/foundation/model/log.ts'
import { resource } from '../../src/foundation/model/resource.ts'
import { signals } from '../../src/foundation/model/signal.ts'
import { DiskStore } from '../../src/pipeline/disk/disk-store.ts'
import type { Pipeline, SignalQueueState } from '../../src/pipeline/pipeline.ts'
import { ExportPipelines } from '../../src/program/agent/export-pipelines.ts'
import { until } from './program.ts'
import { silentLogger } from './silent-logger.ts'

type Variables = Readonly<Record<string, string>>

/**
 * Waits of milliseconds, so that a test of many faults takes seconds; but a receiver that means well is not given up
 * where the host stands still for some.
 */
const quick: Variables = {
  SVC_OTLP_INSECURE: 'true',
  SVC_OTLP_TIMEOUT: '20s',
  SVC_BACKOFF_INITIAL: '10ms',
  SVC_BACKOFF_MAX: '50ms',
  SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '5ms',
}

/** Resources whose batches may be under way beside each other. */
const hosts = Array.from({ length: 4 }, (_, i) => resource({ 'host.name': `host ${i}` }))
const scope = { name: 'test', version: '1' }
const none: ReadonlySet<string> = new Set()

export interface ShipmentOptions {
  /** Variables of the agent's environment. */
  readonly env: Variables
  /** Where batches wait; `disk` unless said otherwise. */
  readonly queue?: 'disk' | 'memory'
  /** Of the queue on disk; left out: one of its own, removed at the end. */
  readonly directory?: string
  /** The number of the first record; 0 unless said otherwise. */
  readonly first?: number
}

/** What the pipeline itself says, of log records. */
export interface Books {
  readonly exported: number
  readonly rejected: number
  readonly dropped: Readonly<Record<string, number>>
  readonly queued: number
}

export class Shipment {
  readonly pipelines: ExportPipelines
  readonly pipeline: Pipeline
  /** Of the queue on disk. */
  readonly directory: string
  /** The number of the next record, which its body begins with. */
  made: number
  readonly #env: Variables
  readonly #own: string | undefined
  readonly #record = new LogRecord()

  constructor({ env, queue = 'disk', directory, first = 0 }: ShipmentOptions) {
    this.made = first
    this.#own = directory === undefined ? mkdtempSync(join(tmpdir(), 'svc-shipment-')) : undefined
    this.directory = directory ?? join(this.#own!, 'queue')
    this.#env = {
      ...quick,
      SVC_PIPELINE_EXPORT_QUEUE_ENABLED: String(queue === 'disk'),
      SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: this.directory,
    }
    const config = this.#config(env)
    this.pipelines = new ExportPipelines(config, { log: silentLogger, observe: () => {}, lock: () => true })
    this.pipeline = this.pipelines.pipeline
    assert.equal(this.pipeline.state('logs').durable, queue === 'disk', String(this.pipelines.store))
  }

  /** The queue on disk. */
  get store(): DiskStore {
    assert.ok(this.pipelines.store instanceof DiskStore, String(this.pipelines.store))
    return this.pipelines.store
  }

  get logs(): SignalQueueState {
    return this.pipeline.state('logs')
  }

  /** Of log records; asserts that the balance of every signal holds. */
  get books(): Books {
    for (const signal of signals) {
      const { collected, recovered, exported, rejected, dropped, droppedTotal, queued } =
        this.pipeline.state(signal)
      const sum = exported + rejected + droppedTotal + queued
      assert.equal(collected + recovered, sum, `the balance of ${signal}`)
      assert.equal(
        droppedTotal,
        [...dropped.values()].reduce((total, items) => total + items, 0),
        signal,
      )
    }
    const { exported, rejected, dropped, queued } = this.logs
    return { exported, rejected, dropped: Object.fromEntries(dropped), queued }
  }

  /** Takes in records, in turns of each host, followed by so many bytes that hardly compress. */
  add(count: number, bytes = 0): void {
    for (let i = 0; i < count; i++) this.addText(bytes === 0 ? '' : noise(bytes))
  }

  /** Takes in one record with this text behind its number. */
  addText(text: string): void {
    const number = this.made++
    this.#record.body = text === '' ? String(number) : `${number} ${text}`
    this.pipeline.intake('logs').add(hosts[number % hosts.length]!, scope, this.#record)
  }

  /** As a reload does; `renewed` are keys whose files have a new content. */
  change(env: Variables, renewed = none): void {
    const ready = this.pipelines.prepare(this.#config(env), renewed)
    assert.ok(ready, 'nothing differs')
    ready.commit()
  }

  /** Waits until something holds, and looks at the balance all the while. */
  until(what: string, holds: (books: Books) => boolean): Promise<void> {
    return until(
      () => `${what}: ${JSON.stringify(this.books)} ${this.logs.destination?.lastError}`,
      60_000,
      () => holds(this.books),
    )
  }

  /** Waits until nothing waits. */
  emptied(): Promise<void> {
    return this.until('nothing is queued', ({ queued }) => queued === 0)
  }

  /** Ends it without sending what is left. */
  async end(): Promise<void> {
    await this.pipeline.close()
    if (this.#own) rmSync(this.#own, { recursive: true, force: true })
  }

  #config(env: Variables): Config {
    const nowhere = '/nonexistent'
    const all = { ...this.#env, ...env }
    const { config, problems } = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env: all })
    assert.deepEqual(problems, [])
    return config
  }
}

/** What a receiver took. */
export interface Taken {
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  readonly counts: { readonly logs: number }
}

/**
 * Nothing waits any more, and all records that were made either arrived or are counted as lost: exactly `dropped`, by
 * reason. Records that were sent again after they had arrived are `duplicates`, which fails unless it is what `want`
 * says. Returns how often records arrived again.
 */
export function assertSettled(
  shipment: Shipment,
  receivers: readonly Taken[],
  want: {
    readonly dropped?: Readonly<Record<string, number>>
    readonly rejected?: number
    readonly duplicates?: 'some' | number
  } = {},
): number {
  const { dropped = {}, rejected = 0, duplicates = 0 } = want
  const { made, books } = shipment
  const lost = Object.values(dropped).reduce((sum, items) => sum + items, 0)
  assert.deepEqual(books, { exported: made - lost - rejected, rejected, dropped, queued: 0 })
  const { missing, again } = arrivals(receivers, made)
  assert.equal(missing, lost, 'records that never arrived')
  if (duplicates !== 'some') assert.equal(again, duplicates, 'records that arrived again')
  const taken = receivers.reduce((sum, { counts }) => sum + counts.logs, 0)
  assert.equal(taken, books.exported + again, 'what the receivers took')
  return again
}

/** How many of the records that were made never arrived, and how often one arrived once more. */
export function arrivals(receivers: readonly Taken[], made: number): { missing: number; again: number } {
  const arrived = new Uint8Array(made)
  let all = 0
  for (const { lines } of receivers)
    for (const { body } of lines) {
      arrived[Number.parseInt(body as string, 10)] = 1
      all++
    }
  const distinct = arrived.reduce((sum, one) => sum + one, 0)
  return { missing: made - distinct, again: all - distinct }
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Text of so many letters, made fast. */
export function noise(bytes: number): string {
  const letters = Buffer.allocUnsafe(bytes)
  let state = (Math.random() * 2 ** 32) >>> 0
  for (let i = 0; i < bytes; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    letters[i] = alphabet.charCodeAt(state >>> 26)
  }
  return letters.toString('latin1')
}
