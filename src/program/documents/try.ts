// Trial of rules on live items: separate processors, whose output goes nowhere.

import { errorText } from '../../foundation/lib/logger.ts'
import type { TryDocument } from '../../view/api/ui/documents.ts'
import type { SignalName, TryQuery } from '../../view/api/ui/source.ts'
import type { DocumentContext } from './document-context.ts'
import type { Caught } from './rules-trial.ts'
import { Summaries } from './tapped-items.ts'
import { TryThread } from './try-thread.ts'

const waitMs = 3000
/** For the items, once they have arrived. */
const tryMs = 1500
const allMs = 5000
const mostItemBytes = 64 * 1024
/** Maximum size of all items. */
const mostBytes = 256 * 1024
const maxText = 300

const underWay = new WeakSet<DocumentContext['pipelines']>()

/** Undefined while another trial is in progress. Changes nothing that runs, and counts nothing. */
export function tryRules(
  parts: DocumentContext,
  query: TryQuery,
  /** Total time. */
  mostMs = allMs,
): Promise<TryDocument> | undefined {
  const { pipelines } = parts
  if (underWay.has(pipelines)) return undefined
  underWay.add(pipelines)
  return tried(parts, query, mostMs).finally(() => underWay.delete(pipelines))
}

async function tried(
  parts: DocumentContext,
  { signal, rules, items: most, left }: TryQuery,
  mostMs: number,
): Promise<TryDocument> {
  const nothing: TryDocument = {
    problems: [],
    items: [],
    notes: [],
    skipped: 0,
    waited_ms: 0,
    no_data_reason: '',
  }
  const startMs = performance.now()
  const thread = new TryThread({ signal, rules }, mostMs)
  const wait = new Wait(parts, signal, most)
  const leave = () => wait.end()
  left.addEventListener('abort', leave)
  if (left.aborted) leave()
  try {
    // Both at the same time; faulty rules need no items.
    const { problems } = await thread.answer('rules')
    if (problems.length > 0)
      return { ...nothing, problems, no_data_reason: 'not tried: the rules have errors' }
    const { caught, skipped } = await wait.over
    const waited_ms = performance.now() - startMs
    if (left.aborted) return nothing
    thread.send({ caught, forMs: tryMs })
    const { items, notes } = await thread.answer('items')
    const untried = caught.length - items.length
    const late = `${untried} of ${caught.length} items were not tried: the others took ${tryMs / 1000} s`
    return {
      ...nothing,
      items,
      notes: untried > 0 ? [...notes, late] : notes,
      skipped,
      waited_ms,
      no_data_reason: items.length === 0 ? whyNone(signal, skipped) : '',
    }
  } catch (error) {
    return { ...nothing, no_data_reason: `${errorText(error)}; use fewer or simpler rules` }
  } finally {
    left.removeEventListener('abort', leave)
    wait.end()
    await thread.close()
  }
}

interface Catch {
  readonly caught: readonly Caught[]
  /** Items that are too large. */
  readonly skipped: number
}

/** Collects live items until there are enough or the time is over. */
class Wait {
  readonly over: Promise<Catch>
  readonly #caught: Caught[] = []
  readonly #stop: () => void
  readonly #timer: NodeJS.Timeout
  #resolve: (caught: Catch) => void = () => {}
  #skipped = 0
  #bytes = 0
  #ended = false

  constructor({ pipelines, shown }: DocumentContext, signal: SignalName, most: number) {
    const tapped = new Summaries(shown, maxText).of(signal)
    this.over = new Promise(resolve => {
      this.#resolve = resolve
    })
    this.#timer = setTimeout(() => this.end(), waitMs)
    // Called for each item of the signal; its memory is reused.
    this.#stop = pipelines.pipeline.watch(signal, (resource, item, scope) => {
      if (this.#ended) return
      try {
        const body = tapped.request(resource, scope, item)
        if (body.length > mostItemBytes) this.#skipped++
        else {
          this.#bytes += body.length
          this.#caught.push({ summary: tapped.summary(resource, item), body })
        }
      } catch {
        // An item that cannot be encoded cannot be tried; this must not affect the sender.
        this.#skipped++
      }
      if (this.#caught.length >= most || this.#bytes >= mostBytes) this.end()
    })
  }

  /** Further calls do nothing. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    this.#stop()
    this.#resolve({ caught: this.#caught, skipped: this.#skipped })
  }
}

function whyNone(signal: SignalName, skipped: number): string {
  const seconds = waitMs / 1000
  if (skipped > 0) {
    const kib = mostItemBytes / 1024
    return `all ${skipped} ${signal} that arrived within ${seconds} s are larger than ${kib} KiB`
  }
  const hints: Readonly<Record<SignalName, string>> = {
    traces: 'they arrive with requests; svc explain PORT shows why there are none',
    metrics: 'they arrive every agent.nodeexporter.otlp.interval; svc doctor host shows why there are none',
    logs: 'they arrive as they are written; svc doctor logs shows why there are none',
    profiles: 'they arrive every agent.profiling.interval; svc doctor profiles shows why there are none',
  }
  return `no ${signal} arrived within ${seconds} s: ${hints[signal]}`
}
