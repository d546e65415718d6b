// Answers that go on: a line of JSON whenever there is something new, until the client has gone.

import type { ServerResponse } from 'node:http'
import type { Connection, Late } from './connections.ts'
import type { Live } from './ui/source.ts'

export const linesType = 'application/x-ndjson'

/** Answers that go on at once, of all clients. */
const mostFollowers = 32
/** Silence after which the kernel asks whether a client is still there: one that vanished keeps its place no longer. */
const probeMs = 30_000

export function linesOf(items: readonly unknown[]): string {
  let text = ''
  for (const item of items) text += `${JSON.stringify(item)}\n`
  return text
}

/** The answers that go on. */
export class Followers {
  #open = 0
  readonly #failed: (error: unknown) => void

  /** `failed` is told what a document threw, which ends its answer. */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  get full(): boolean {
    return this.#open >= mostFollowers
  }

  /**
   * Goes on with an answer whose head and first lines were written. A client that does not read is not written to, and
   * `live` is not asked meanwhile. It ends once `mayGoOn` says no: who may look can change while somebody does.
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
    const late: Late = { gone: end, leave: end }
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
