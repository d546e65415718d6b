import { type Resource, resource } from '../../src/foundation/model/resource.ts'
import type { Service } from '../../src/identity/entities/service-list.ts'
import { Tracing } from '../../src/program/agent/tracing.ts'
import type { DocumentContext } from '../../src/program/documents/document-context.ts'
import { EdgeWindow } from '../../src/view/window/edge-window.ts'
import { SpanWindow } from '../../src/view/window/span-window.ts'

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
  readonly probe?: boolean
}

/** A window of who asks whom, whose clock stands, and an agent around it as far as its documents look. */
export class AskedWindow {
  nowMs = 1_700_000_000_000
  readonly parts: DocumentContext
  readonly edges: EdgeWindow
  readonly spans: SpanWindow

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
      tracing: Object.create(Tracing.prototype) as Tracing,
      shown: (text: string) => text.replaceAll('secret', '[REDACTED]'),
    } as unknown as DocumentContext
  }

  ask({ client, server, protocol = 'http1', port = 80, failed = false, ms = 10, ...more }: Request): void {
    const ns = ms * 1e6
    const isClientHere = typeof client !== 'string'
    const isServerHere = typeof server !== 'string'
    const { at = '127.0.0.1', probe = false } = more
    this.edges.add({
      client,
      server,
      protocol,
      failed,
      clientNs: isClientHere ? ns : -1,
      serverNs: isServerHere ? ns : -1,
      clientAddress: isClientHere ? at : '',
      serverAddress: isServerHere ? at : '',
      serverPort: port,
      probe,
    })
  }
}

/** A service, or a process of it. */
export function named(name: string, more: Readonly<Record<string, string | number>> = {}): Resource {
  return resource({ 'service.name': name, ...more })
}
