import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { objectOf } from '../../../foundation/lib/json-fields.ts'
import { pause } from '../../../foundation/lib/pause.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Owner } from '../../../foundation/model/entity.ts'
import { type ApiClient, ApiError, metadataOnly } from './api-client.ts'
import { explain, type Fault } from './fault.ts'
import type { Interning } from './interning.ts'
import { controllerOf } from './pod-reader.ts'
import type { Timing } from './timing.ts'

const maxKnown = 4096
/** Maximum queued lookups; owners over the limit are not looked up until their pods change. */
const maxWaiting = 4096
const atOnce = 4
const attempts = 4
const maxAnswerBytes = 1024 * 1024

/** API groups and resources of owners that have owners themselves (Kubernetes API, apps v1 and batch v1). */
const collections: ReadonlyMap<string, readonly [group: string, resource: string]> = new Map([
  ['ReplicaSet', ['apps/v1', 'replicasets']],
  ['Job', ['batch/v1', 'jobs']],
])

export interface OwnerLookupOptions {
  readonly client: ApiClient
  readonly interning: Interning
  readonly timing: Timing
  readonly stop: AbortSignal
  /** Called when the owners above one are known, or will stay unknown. Must not throw. */
  readonly settled: (ownerUid: string) => void
  readonly report: (resource: string, fault: Fault | undefined) => void
}

/** `failedUntilMs`: the lookup failed, and may be retried then. */
type Answer = { readonly above: readonly Owner[] } | { readonly failedUntilMs: number }

/** Finds owners of the owners of pods: the Deployment of a ReplicaSet, the CronJob of a Job. */
export class OwnerLookup {
  readonly #options: OwnerLookupOptions
  readonly #answers = small(new BoundedMap<string, Answer>(maxKnown))
  readonly #waiting = new Map<string, { readonly owner: Owner; readonly namespace: string }>()
  readonly #asked = new Set<string>()
  readonly #refusedUntilMs = new Map<string, number>()

  constructor(options: OwnerLookupOptions) {
    this.#options = options
  }

  /** Owners above this one, `unknown` if they cannot be found, or `asked` until `settled` is called. */
  above(owner: Owner, namespace: string): readonly Owner[] | 'unknown' | 'asked' {
    if (!collections.has(owner.kind)) return []
    if (owner.uid === '') return 'unknown'
    const answer = this.#answers.get(owner.uid)
    if (answer !== undefined && 'above' in answer) return answer.above
    if (this.#asked.has(owner.uid)) return answer === undefined ? 'asked' : 'unknown'
    if (this.#waiting.has(owner.uid)) return 'asked'
    if (answer !== undefined && performance.now() < answer.failedUntilMs) return 'unknown'
    if (this.#isRefused(owner.kind) || this.#waiting.size >= maxWaiting) return 'unknown'
    this.#waiting.set(owner.uid, { owner, namespace })
    this.#next()
    return 'asked'
  }

  #isRefused(kind: string): boolean {
    return performance.now() < (this.#refusedUntilMs.get(kind) ?? 0)
  }

  #next(): void {
    for (const [uid, { owner, namespace }] of this.#waiting) {
      if (this.#asked.size >= atOnce) return
      this.#waiting.delete(uid)
      this.#asked.add(uid)
      void this.#find(owner, namespace).finally(() => {
        this.#asked.delete(uid)
        this.#next()
      })
    }
  }

  async #find(owner: Owner, namespace: string): Promise<void> {
    const { stop, timing } = this.#options
    let waitMs = timing.backoff.initialMs
    for (let attempt = 1; !stop.aborted; attempt++) {
      // Another request may have been rejected since.
      const isFinal = this.#isRefused(owner.kind) || (await this.#ask(owner, namespace))
      if (isFinal || attempt === attempts || stop.aborted) {
        if (!this.#answers.get(owner.uid)) this.#fail(owner, timing.refusedMs)
        return
      }
      this.#fail(owner, timing.refusedMs)
      await pause(waitMs * (1 - Math.random() / 2), stop)
      waitMs *= timing.backoff.multiplier
    }
  }

  /** True if a retry is pointless. */
  async #ask(owner: Owner, namespace: string): Promise<boolean> {
    const { client, interning, timing, stop, settled, report } = this.#options
    const [group, resource] = collections.get(owner.kind)!
    const path = `/apis/${group}/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(owner.name)}`
    try {
      const request = { path, accept: metadataOnly, timeoutMs: timing.answerMs, stop }
      const metadata = objectOf((await client.object(request, maxAnswerBytes)).metadata)
      report(resource, undefined)
      // Another object of that name was created since.
      if (metadata.uid !== owner.uid) return true
      const found = controllerOf(metadata)
      this.#answers.set(owner.uid, { above: found === undefined ? [] : [interning.owner(found)] })
      settled(owner.uid)
      return true
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0
      if (status === 404 || stop.aborted) return true
      if (status === 403) {
        this.#refusedUntilMs.set(owner.kind, performance.now() + timing.refusedMs)
        report(resource, explain(error, { place: client.place, verb: 'get', resource, namespace: '' }))
        return true
      }
      return false
    }
  }

  #fail(owner: Owner, forMs: number): void {
    this.#answers.set(owner.uid, { failedUntilMs: performance.now() + forMs })
    this.#options.settled(owner.uid)
  }
}
