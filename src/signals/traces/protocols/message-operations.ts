import { SpanKind } from '../../../foundation/model/span.ts'
import { messagingClient, messagingProcess } from './durations.ts'
import type { MessageOperation } from './message-call.ts'

/** The usual operations of a system. */
export function messageOperations(system: string) {
  const client = { system, kind: SpanKind.client, duration: messagingClient }
  return {
    publish: { ...client, name: 'publish', type: 'send', kind: SpanKind.producer },
    receive: { ...client, name: 'receive', type: 'receive' },
    process: {
      ...client,
      name: 'process',
      type: 'process',
      kind: SpanKind.consumer,
      duration: messagingProcess,
    },
  } satisfies Record<string, MessageOperation>
}
