// The window that the live page looks at: it keeps what comes by, within its memory.

import { isLoopback } from '../api/guard.ts'
import type { Config } from '../config/index.ts'
import type { Logger } from '../lib/logger.ts'
import { fitted } from '../lib/memory-room.ts'
import type { Profile } from '../model/profile.ts'
import type { RequestEdge } from '../model/request-edge.ts'
import type { Resource } from '../model/resource.ts'
import { type Span, SpanKind } from '../model/span.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'
import type { TracerOptions } from '../tracing/tracer.ts'
import { EdgeWindow } from '../window/edge-window.ts'
import { ProfileWindow } from '../window/profile-window.ts'
import { SpanWindow } from '../window/span-window.ts'
import { Vitals } from '../window/vitals.ts'
import type { Window } from './ui/parts.ts'

/** Parts of `self_telemetry.ui.max_memory`. */
const shares = { spans: 0.45, logs: 0.18, profiles: 0.16, metrics: 0.1, edges: 0.08, vitals: 0.03 } as const

/** More edges than fit here nobody can look at, and adding them up would block. */
const mostEdgeBytes = 8 * 1024 * 1024

/** Memory of one part, in bytes. */
export function shareOf(config: Config, part: keyof typeof shares): number {
  const share = Math.floor(fitted(config.self_telemetry.ui.max_memory) * shares[part])
  return part === 'edges' ? Math.min(share, mostEdgeBytes) : share
}

export class LiveWindow implements Window {
  readonly spans: SpanWindow
  readonly edges: EdgeWindow
  readonly profiles: ProfileWindow
  readonly vitals: Vitals
  readonly maxBytes: number
  readonly windowMs: number
  readonly edge: NonNullable<TracerOptions['edge']>
  /** Port of the page itself: who looks at it is not what it is about. 0: none yet. */
  ownPort = 0

  constructor(config: Config, pipeline: Pick<Pipeline, 'watch'>, log: Pick<Logger, 'error'>) {
    const { window: windowMs, max_memory: mostBytes } = config.self_telemetry.ui
    const common = { windowMs, now: Date.now }
    this.windowMs = windowMs
    this.maxBytes = fitted(mostBytes)
    this.spans = new SpanWindow({ ...common, maxBytes: shareOf(config, 'spans') })
    this.edges = new EdgeWindow({ ...common, maxBytes: shareOf(config, 'edges') })
    this.profiles = new ProfileWindow({ ...common, maxBytes: shareOf(config, 'profiles') })
    this.vitals = new Vitals({ windowMs, maxBytes: shareOf(config, 'vitals') })
    const keepEdge = guarded(log, 'the map', (request: RequestEdge, _: undefined) => {
      const { server, serverPort } = request
      if (typeof server === 'string' && serverPort === this.ownPort && isLoopback(server)) return
      this.edges.add(request)
    })
    this.edge = request => keepEdge(request, undefined)
    const keepSpan = (resource: Resource, span: Span) => {
      if (span.kind !== SpanKind.client || !this.asksUs(span)) this.spans.add(resource, span)
    }
    pipeline.watch('traces', guarded(log, 'traces', keepSpan))
    const keepProfile = (resource: Resource, profile: Profile) => this.profiles.add(resource, profile)
    pipeline.watch('profiles', guarded(log, 'profiles', keepProfile))
  }

  get bytes(): number {
    return this.spans.bytes + this.edges.bytes + this.profiles.bytes + this.vitals.bytes
  }

  private asksUs({ attributes }: Span): boolean {
    return (
      attributes.get('server.port') === this.ownPort &&
      isLoopback(String(attributes.get('server.address') ?? ''))
    )
  }
}

/** What is shown is less than what is exported: a fault in keeping it ends that, once and for all, and nothing else. */
export function guarded<A, B>(
  log: Pick<Logger, 'error'>,
  what: string,
  keep: (first: A, second: B) => void,
): (first: A, second: B) => void {
  let isBroken = false
  return (first, second) => {
    if (isBroken) return
    try {
      keep(first, second)
    } catch (error) {
      isBroken = true
      log.error(`the live page keeps ${what} no longer, until svc is restarted; please report this`, {
        error,
      })
    }
  }
}
