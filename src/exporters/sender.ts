import { UnderWay } from '../lib/under-way.ts'
import type { Sender } from '../model/batch.ts'

/** What a sender stands on. */
interface Client {
  readonly connected: boolean
  close(): void
}

/** A sender whose `close` waits for what is under way, once, and then closes the client. */
export function senderOn(
  client: Client,
  endpoint: string,
  send: Sender['send'],
): Sender & { readonly connected: boolean } {
  const underWay = new UnderWay()
  let closed: Promise<void> | undefined
  async function close(): Promise<void> {
    await underWay.idle()
    client.close()
  }
  return {
    endpoint,
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
