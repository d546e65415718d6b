// The data behind the live page: keeps recent telemetry in bounded memory.

import type { Config } from '../../config/index.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import type { MemoryGovernor } from '../../foundation/lib/memory-governor.ts'
import { fitted } from '../../foundation/lib/memory-room.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import type { RequestEdge } from '../../foundation/model/request-edge.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import { type Span, SpanKind } from '../../foundation/model/span.ts'
import type { EncodedItem } from '../../pipeline/exporters/otlp/request.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { TracerOptions } from '../../signals/traces/tracing/tracer-options.ts'
import { isLoopback } from '../../view/api/guard.ts'
import { EdgeWindow } from '../../view/window/edge-window.ts'
import { ProfileWindow } from '../../view/window/profile-window.ts'
import { SpanWindow } from '../../view/window/span-window.ts'
import { Vitals } from '../../view/window/vitals.ts'

/** Parts of `self_telemetry.ui.max_memory`. */
const shares = { spans: 0.45, logs: 0.18, profiles: 0.16, metrics: 0.1, edges: 0.08, vitals: 0.03 } as const

/** More edges would be unreadable, and adding them up would block. */
const mostEdgeBytes = 8 * 1024 * 1024

/** Memory of one part, in bytes. */
export function shareOf(config: Config, part: keyof typeof shares): number {
  const share = Math.floor(fitted(config.self_telemetry.ui.max_memory) * shares[part])
  return part === 'edges' ? Math.min(share, mostEdgeBytes) : share
}

/** Memory pressure from which detail is omitted. */
const detailPressure = 2

/** The history for the page. Each part has its own share of the memory. */
export class LiveWindow {
  spans: SpanWindow
  edges: EdgeWindow
  profiles: ProfileWindow
  readonly vitals: Vitals
  /** Of all parts. */
  readonly maxBytes: number
  /** Longest time to look back, in milliseconds. */
  readonly windowMs: number
  /** Memory of parts that are kept elsewhere. */
  otherBytes: () => number = () => 0
  readonly edge: NonNullable<TracerOptions['edge']>
  /** Port of the page itself, whose requests are ignored. 0: not open yet. */
  ownPort = 0
  readonly #make: {
    readonly spans: () => SpanWindow
    readonly edges: () => EdgeWindow
    readonly profiles: () => ProfileWindow
  }
  readonly #governor: MemoryGovernor

  constructor(
    config: Config,
    pipeline: Pick<Pipeline, 'watch' | 'watchEncoded'>,
    log: Pick<Logger, 'error'>,
    governor: MemoryGovernor,
  ) {
    this.#governor = governor
    const { window: windowMs, max_memory: mostBytes } = config.self_telemetry.ui
    const common = { windowMs, now: Date.now }
    this.windowMs = windowMs
    this.maxBytes = fitted(mostBytes)
    this.#make = {
      spans: () => new SpanWindow({ ...common, maxBytes: shareOf(config, 'spans') }),
      edges: () => new EdgeWindow({ ...common, maxBytes: shareOf(config, 'edges') }),
      profiles: () => new ProfileWindow({ ...common, maxBytes: shareOf(config, 'profiles') }),
    }
    this.spans = this.#make.spans()
    this.edges = this.#make.edges()
    this.profiles = this.#make.profiles()
    governor.register({
      name: 'live page',
      kind: 'detail',
      apart: true,
      bytes: () => this.#kept,
      shed: bytes => this.#shed(bytes),
    })
    this.vitals = new Vitals({ windowMs, maxBytes: shareOf(config, 'vitals') })
    const keepEdge = guarded(log, 'the map', (request: RequestEdge) => {
      const { server, serverPort } = request
      if (this.#isPaused) return
      if (typeof server === 'string' && serverPort === this.ownPort && isLoopback(server)) return
      this.edges.add(request)
    })
    this.edge = keepEdge
    const keepSpan = (resource: Resource, span: Span, encoded: EncodedItem) => {
      if (this.#isPaused) return
      if (span.kind !== SpanKind.client || !this.#asksUs(span)) this.spans.add(resource, span, encoded)
    }
    pipeline.watchEncoded('traces', guarded(log, 'traces', keepSpan))
    const keepProfile = (resource: Resource, profile: Profile) => {
      if (!this.#isPaused) this.profiles.add(resource, profile)
    }
    pipeline.watch('profiles', guarded(log, 'profiles', keepProfile))
  }

  /** Memory in use, of all parts. */
  get bytes(): number {
    return this.#kept + this.otherBytes()
  }

  get #kept(): number {
    return this.spans.bytes + this.edges.bytes + this.profiles.bytes + this.vitals.bytes
  }

  /** Nothing is stored while memory is short. */
  get #isPaused(): boolean {
    return this.#governor.pressure >= detailPressure
  }

  /** Clears one part after the other, largest first: its data is only for display. */
  #shed(bytes: number): number {
    const before = this.#kept
    const parts = ['spans', 'profiles', 'edges'] as const
    for (const part of parts.toSorted((a, b) => this[b].bytes - this[a].bytes)) {
      if (before - this.#kept >= bytes) break
      Object.assign(this, { [part]: this.#make[part]() })
    }
    return Math.max(0, before - this.#kept)
  }

  #asksUs({ attributes }: Span): boolean {
    return (
      attributes.get('server.port') === this.ownPort &&
      isLoopback(String(attributes.get('server.address') ?? ''))
    )
  }
}

/** Display is less important than export: an error here disables the window permanently, and nothing else. */
export function guarded<Args extends readonly unknown[]>(
  log: Pick<Logger, 'error'>,
  what: string,
  keep: (...args: Args) => void,
): (...args: Args) => void {
  let isBroken = false
  return (...args) => {
    if (isBroken) return
    try {
      keep(...args)
    } catch (error) {
      isBroken = true
      log.error(`the live page stopped keeping ${what} until svc is restarted; please report this`, {
        error,
      })
    }
  }
}
