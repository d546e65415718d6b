import type { IncomingMessage } from 'node:http'
import { Backoff } from '../../../foundation/lib/backoff.ts'
import {
  isObject,
  type JsonObject,
  objectOf,
  parseObject,
  textOf,
} from '../../../foundation/lib/json-fields.ts'
import { LineSplitter } from '../../../foundation/lib/line-splitter.ts'
import { pause } from '../../../foundation/lib/pause.ts'
import { Turn } from '../../../foundation/lib/turn.ts'
import { type ApiClient, ApiError } from './api-client.ts'
import { explain, type Fault } from './fault.ts'
import { FormatError, ListReader } from './list-reader.ts'
import type { Timing } from './timing.ts'

const maxObjectBytes = 4 * 1024 * 1024
const pageItems = 500
/** Number of watches in a row without events before a new list. */
const fruitlessWatches = 3
/** Minimum duration of a watch, in milliseconds; one that ends sooner counts as failed. */
const shortestWatchMs = 1_000

/** Keeper of watched objects. None of its methods may throw. */
export interface ObjectKeeper {
  /** Takes a new or changed object. Returns its uid; '' if it cannot be used. */
  take(object: JsonObject): string
  gone(uid: string): void
  uids(): Iterable<string>
}

/** Keeper that remembers the objects of one watch, for a table with several watches. */
export function keeperOf(take: (object: JsonObject) => string, gone: (uid: string) => void): ObjectKeeper {
  const uids = new Set<string>()
  return {
    take: object => {
      const uid = take(object)
      if (uid !== '') uids.add(uid)
      return uid
    },
    gone: uid => {
      if (uids.delete(uid)) gone(uid)
    },
    uids: () => uids,
  }
}

export interface ResourceWatchOptions {
  readonly client: ApiClient
  /** Path of the collection, such as `/api/v1/pods`. */
  readonly path: string
  /** Resource as in RBAC: `pods`. */
  readonly resource: string
  /** '' for all namespaces. */
  readonly namespace: string
  /** Encoded query to select objects: `fieldSelector=…`; '' for all. */
  readonly selector: string
  readonly keeper: ObjectKeeper
  readonly timing: Timing
  readonly stop: AbortSignal
  /** Reports a fault; undefined clears it. */
  readonly report: (fault: Fault | undefined) => void
}

/** The server no longer has our resource version: a new list is required. */
class ExpiredError extends Error {
  override readonly name = 'ExpiredError'
}

/**
 * Lists a collection and watches it from there (Kubernetes API concepts, "Efficient detection of changes"). A watch that
 * ends continues at its last version; only if the server no longer has that version is the list read again.
 */
export class ResourceWatch {
  /** Whether the last request was answered. */
  connected = false
  readonly #options: ResourceWatchOptions
  readonly #backoff: Backoff
  /** Resource version of the last object; '' requests a list. */
  #version = ''
  /** Requests a current list instead of one from the server's cache. */
  #wantsLatest = false
  #fruitless = 0

  constructor(options: ResourceWatchOptions) {
    this.#options = options
    this.#backoff = new Backoff(options.timing.backoff)
  }

  /** Runs until `stop`; never rejects. */
  async run(): Promise<void> {
    const { stop } = this.#options
    while (!stop.aborted) {
      let waitMs = 0
      try {
        if (this.#version === '') await this.#list()
        waitMs = await this.#watch()
      } catch (error) {
        waitMs = this.#failed(error)
      }
      if (!stop.aborted && waitMs > 0) await pause(waitMs, stop)
    }
    this.connected = false
  }

  /** Wait after an error, in milliseconds. */
  #failed(error: unknown): number {
    const { stop, report, client, resource, namespace } = this.#options
    if (stop.aborted) return 0
    const waitMs = this.#backoff.next()
    if (error instanceof ExpiredError) {
      this.#relist()
      return waitMs
    }
    const verb = this.#version === '' ? 'list' : 'watch'
    const fault = explain(error, { place: client.place, resource, namespace, verb })
    if (fault.isAnswer && ++this.#fruitless >= fruitlessWatches) this.#relist()
    this.connected = false
    report(fault)
    return Math.max(waitMs, fault.retryAfterMs * (1 + Math.random() / 4))
  }

  #relist(): void {
    this.#version = ''
    this.#wantsLatest = true
    this.#fruitless = 0
  }

  #well(): void {
    this.connected = true
    this.#options.report(undefined)
  }

  async #list(): Promise<void> {
    const { keeper } = this.#options
    const seen = new Set<string>()
    let metadata = await this.#page('', seen)
    // The server's cache answers without pages if any version is acceptable.
    for (let next = textOf(metadata.continue, 65_536); next !== ''; next = textOf(metadata.continue, 65_536))
      metadata = await this.#page(next, seen)
    const version = textOf(metadata.resourceVersion)
    if (version === '') throw new FormatError('not a Kubernetes list')
    for (const uid of [...keeper.uids()]) if (!seen.has(uid)) keeper.gone(uid)
    this.#version = version
    this.#well()
  }

  /** Reports the objects of one page. Returns its `metadata`. */
  async #page(next: string, seen: Set<string>): Promise<JsonObject> {
    const { keeper, stop } = this.#options
    const from =
      next !== '' ? `&continue=${encodeURIComponent(next)}` : this.#wantsLatest ? '' : '&resourceVersion=0'
    const answer = await this.#open(`limit=${pageItems}${from}`, next !== '')
    const reader = new ListReader(maxObjectBytes)
    await this.#read(answer, this.#options.timing.answerMs, 'silence', async (piece, turn) => {
      for (const item of reader.items(piece)) {
        const object = parseObject(item)
        if (object === undefined) throw new FormatError('an object in the answer is not JSON')
        const uid = keeper.take(object)
        if (uid !== '') seen.add(uid)
        const rest = turn.rest()
        if (rest) await rest
        if (stop.aborted) return
      }
    })
    const envelope = parseObject(reader.envelope)
    if (!isObject(envelope?.metadata)) throw new FormatError('not a Kubernetes list')
    return envelope.metadata
  }

  /** Reports changes until the server ends the watch. Returns the wait before the next, in milliseconds. */
  async #watch(): Promise<number> {
    const { timing, stop } = this.#options
    const askedMs = Math.round(timing.watchMs * (1 + Math.random()))
    const seconds = Math.max(1, Math.ceil(askedMs / 1000))
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=${seconds}&resourceVersion=${encodeURIComponent(this.#version)}`
    const startedAt = performance.now()
    const lasted = () => performance.now() - startedAt >= Math.min(shortestWatchMs, askedMs)
    const answer = await this.#open(query, true)
    this.#well()
    const lines = new LineSplitter(maxObjectBytes)
    try {
      await this.#read(answer, askedMs + timing.hangMs, 'whole', async (piece, turn) => {
        for (const line of lines.lines(piece)) {
          this.#apply(line)
          const rest = turn.rest()
          if (rest) await rest
          if (stop.aborted) return
        }
      })
    } catch (error) {
      if (error instanceof FormatError || error instanceof ExpiredError || error instanceof ApiError)
        throw error
      // Connections break, some at a proxy with an idle timeout. It is a fault only if a new one fails.
      if (lasted()) this.#backoff.reset()
      return this.#backoff.next()
    }
    if (!lasted()) return this.#backoff.next()
    this.#backoff.reset()
    return 0
  }

  #apply(line: Buffer): void {
    const { keeper } = this.#options
    const event = parseObject(line)
    if (event === undefined) throw new FormatError('a line of the watch is not JSON')
    const object = objectOf(event.object)
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
        keeper.take(object)
        break
      case 'DELETED':
        keeper.gone(textOf(objectOf(object.metadata).uid))
        break
      case 'ERROR':
        throw object.code === 410
          ? new ExpiredError()
          : new ApiError('the watch failed', { status: typeof object.code === 'number' ? object.code : 500 })
      case 'BOOKMARK':
        break
      default:
        return
    }
    const version = textOf(objectOf(object.metadata).resourceVersion)
    if (!/^[\w.-]{1,128}$/.test(version)) return
    this.#version = version
    this.#fruitless = 0
    this.#backoff.reset()
  }

  async #open(query: string, mayExpire: boolean): Promise<IncomingMessage> {
    const { client, path, selector, timing, stop } = this.#options
    try {
      return await client.open({
        path: `${path}?${selector === '' ? '' : `${selector}&`}${query}`,
        accept: 'application/json',
        timeoutMs: timing.answerMs,
        stop,
      })
    } catch (error) {
      if (mayExpire && (error as { status?: number }).status === 410) throw new ExpiredError()
      throw error
    }
  }

  /** Passes on the pieces of a body. `limitMs` is for the whole body, or for the silence between two pieces. */
  async #read(
    answer: IncomingMessage,
    limitMs: number,
    limits: 'whole' | 'silence',
    use: (piece: Buffer, turn: Turn) => Promise<void>,
  ): Promise<void> {
    const late = () => answer.destroy(new Error(`no data for ${Math.round(limitMs / 1000)} s`))
    const timer = setTimeout(late, limitMs).unref()
    const turn = new Turn(1)
    try {
      for await (const piece of answer) {
        await use(piece as Buffer, turn)
        if (limits === 'silence') timer.refresh()
      }
    } finally {
      clearTimeout(timer)
      answer.destroy()
    }
  }
}
