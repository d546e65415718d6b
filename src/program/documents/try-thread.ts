// Foreign rules may use any amount of time and memory, in YAML and in patterns: they run in a thread that is
// terminated.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { TryAnswer, TryOrder, TryRequest } from './try-worker.ts'

const heapMb = 64

/** Beside the bundle, or this file. */
const entry = ['try-worker.cjs', 'try-worker.ts']
  .map(name => join(import.meta.dirname, name))
  .find(path => existsSync(path))

type Kind = TryAnswer['kind']

export class TryThread {
  readonly #worker: Worker
  readonly #waiting = new Map<Kind, (answer: TryAnswer | Error) => void>()
  readonly #answers = new Map<Kind, TryAnswer>()
  readonly #timer: NodeJS.Timeout
  #failure: Error | undefined

  /** Terminates after `mostMs` in any case. */
  constructor(order: TryOrder, mostMs: number) {
    if (entry === undefined) throw new Error('cannot find try-worker.cjs: reinstall the package')
    this.#worker = new Worker(entry, {
      workerData: order,
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 8 },
      name: 'svc-try',
    })
    this.#worker.unref()
    this.#worker.on('message', (answer: TryAnswer) => {
      this.#answers.set(answer.kind, answer)
      this.#waiting.get(answer.kind)?.(answer)
    })
    this.#worker.on('error', error => {
      const { code, message } = error as NodeJS.ErrnoException
      const memory = `the rules need more than ${heapMb} MiB of memory`
      this.#fail(code === 'ERR_WORKER_OUT_OF_MEMORY' ? memory : message)
    })
    this.#worker.on('exit', () => this.#fail('the trial of the rules was stopped'))
    this.#timer = setTimeout(() => {
      this.#fail(`the rules take longer than ${mostMs / 1000} s`)
      void this.#worker.terminate()
    }, mostMs)
    this.#timer.unref()
  }

  /** An answer of this kind, sent once. Rejects with a readable error if none will come. */
  answer<K extends Kind>(kind: K): Promise<Extract<TryAnswer, { readonly kind: K }>> {
    return new Promise((resolve, reject) => {
      const settle = (answer: TryAnswer | Error) =>
        answer instanceof Error ? reject(answer) : resolve(answer as never)
      const known = this.#answers.get(kind) ?? this.#failure
      if (known === undefined) this.#waiting.set(kind, settle)
      else settle(known)
    })
  }

  send(request: TryRequest): void {
    this.#worker.postMessage(request)
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#worker.terminate()
  }

  #fail(why: string): void {
    this.#failure ??= new Error(why)
    for (const settle of this.#waiting.values()) settle(this.#failure)
    this.#waiting.clear()
  }
}
