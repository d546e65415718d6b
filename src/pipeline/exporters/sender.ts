import { RunningTasks } from '../../foundation/lib/running-tasks.ts'
import type { ExportCall, Sender } from '../../foundation/model/batch.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'

/** Client used by a sender. */
interface Client {
  readonly connected: boolean
  close(): void
}

/** Sender whose `close` waits for requests in flight, and then closes the client. */
export function senderOn(
  client: Client,
  endpoint: string,
  callOf: Sender['callOf'],
  send: Sender['send'],
): Sender & { readonly connected: boolean } {
  const underWay = new RunningTasks()
  const calls = new Map<Signal, ExportCall>(signals.map(signal => [signal, callOf(signal)]))
  let closed: Promise<void> | undefined
  async function close(): Promise<void> {
    await underWay.idle()
    client.close()
  }
  return {
    endpoint,
    callOf: signal => calls.get(signal)!,
    get connected() {
      return client.connected
    },
    send: (batch, stop) => underWay.run(() => send(batch, stop)),
    close: () => {
      closed ??= close()
      return closed
    },
  }
}
