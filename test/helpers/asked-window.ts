import type { UiParts } from '../../src/agent/ui/parts.ts'
import type { Service } from '../../src/entities/service-list.ts'
import { Exchange } from '../../src/model/exchange.ts'
import { type Resource, resource } from '../../src/model/resource.ts'
import { EdgeWindow } from '../../src/window/edge-window.ts'
import { SpanWindow } from '../../src/window/span-window.ts'

export interface Request {
  readonly client: Resource | string
  readonly server: Resource | string
  readonly protocol?: string
  /** Where it is asked. */
  readonly port?: number
  readonly failed?: boolean
  readonly ms?: number
  /** Own address of the side that is seen. */
  readonly at?: string
  /** The request's head. */
  readonly head?: string
}

/** A window of who asks whom, whose clock stands, and an agent around it as far as its documents look. */
export class AskedWindow {
  nowMs = 1_700_000_000_000
  readonly parts: UiParts
  readonly edges: EdgeWindow
  readonly spans: SpanWindow
  readonly #exchange = new Exchange()

  constructor(listening: readonly Partial<Service>[] = [], windowMs = 900_000) {
    const options = { windowMs, now: () => this.nowMs }
    this.edges = new EdgeWindow({ ...options, maxBytes: 1 << 20 })
    this.spans = new SpanWindow({ ...options, maxBytes: 1 << 20 })
    this.parts = {
      window: { edges: this.edges, spans: this.spans, windowMs },
      processes: {
        liveServices: async () =>
          listening.map(service => ({ name: '', namespace: '', instances: 1, ports: [], ...service })),
      },
      shown: (text: string) => text.replaceAll('secret', '[REDACTED]'),
    } as unknown as UiParts
  }

  ask({ client, server, protocol = 'http1', port = 80, failed = false, ms = 10, ...more }: Request): void {
    const exchange = this.#exchange
    exchange.protocol = protocol
    exchange.server = typeof client === 'string'
    exchange.peerPort = exchange.server ? 40_000 : port
    exchange.localAddress = more.at ?? '127.0.0.1'
    exchange.bytes = Buffer.from(more.head ?? 'GET /cart HTTP/1.1\r\n\r\n')
    exchange.requestStart = 0
    exchange.requestEnd = exchange.bytes.length
    const ns = ms * 1e6
    this.edges.add(
      client,
      server,
      failed,
      exchange.server ? -1 : ns,
      typeof server === 'string' ? -1 : ns,
      exchange,
    )
  }
}

/** A service, or a process of it. */
export function named(name: string, more: Readonly<Record<string, string | number>> = {}): Resource {
  return resource({ 'service.name': name, ...more })
}
