// Followed documents: a line of JSON for each update, until the client closes the connection.

import type { ServerResponse } from 'node:http'
import type { Connection, OpenRequest } from './connections.ts'
import type { Live } from './ui/source.ts'

export const linesType = 'application/x-ndjson'

/** Maximum number of followed documents, all clients together. */
const mostFollowers = 32
/** Idle time before the kernel probes a client, so that a vanished one does not keep its slot. */
const probeMs = 30_000

export function linesOf(items: readonly unknown[]): string {
  let text = ''
  for (const item of items) text += `${JSON.stringify(item)}\n`
  return text
}

/** The followed documents. */
export class Followers {
  #open = 0
  readonly #failed: (error: unknown) => void

  /** `failed` receives errors of a document, which end its answer. */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  get full(): boolean {
    return this.#open >= mostFollowers
  }

  /**
   * Continues an answer whose head and first lines were written. A client that does not read gets no more data, and
   * `live` is not called for it. It ends when `mayGoOn` returns false, because access may change.
   */
  follow(
    response: ServerResponse,
    connection: Connection,
    live: Live<unknown>,
    mayGoOn: () => boolean,
  ): void {
    this.#open++
    connection.socket.setKeepAlive(true, probeMs)
    let timer: NodeJS.Timeout | undefined
    let isOver = false
    const end = () => {
      if (isOver) return
      isOver = true
      this.#open--
      clearTimeout(timer)
      connection.end(late)
      live.close?.()
      response.end()
    }
    const late: OpenRequest = { gone: end, leave: end }
    const look = async () => {
      if (isOver) return
      try {
        const text = response.writableNeedDrain ? '' : linesOf(await live.next())
        if (isOver) return
        if (!mayGoOn()) {
          end()
          return
        }
        if (text !== '') response.write(text)
      } catch (error) {
        this.#failed(error)
        end()
        return
      }
      timer = setTimeout(look, live.everyMs)
    }
    connection.begin(late)
    timer = setTimeout(look, live.everyMs)
  }
}
