// Thread that reads files and names frames: a separate program, started by worker-thread.ts.

import { parentPort, workerData } from 'node:worker_threads'
import { smallPool } from '../../foundation/lib/buffer-pool.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { lowerPriority } from '../../foundation/lib/priority.ts'
import { smallCaches } from '../../foundation/lib/small-tables.ts'
import { FrameNames } from './frame-names.ts'
import type { Answer, Request, SymbolSettings } from './messages.ts'
import { UnwindTableBuilder } from './unwind-table-builder.ts'

// Reads files of any user: must not delay the agent or other programs.
lowerPriority()
smallPool()

const builder = new UnwindTableBuilder(workerData as SymbolSettings)
const names = new FrameNames(builder, workerData as SymbolSettings)

parentPort!.on('message', (request: Request) => {
  const answer = answerTo(request)
  if (answer !== undefined) parentPort!.postMessage(answer, transferOf(answer))
})

function answerTo(request: Request): Answer | undefined {
  switch (request.kind) {
    case 'file':
      return tableOf(request)
    case 'forget':
      builder.forget(request.id)
      names.forgetFile(request.id)
      return undefined
    case 'runtime': {
      const settings = names.attach(request.runtime)
      return settings && { kind: 'runtime', pid: request.runtime.pid, settings }
    }
    case 'stacks':
      return { kind: 'stacks', ...names.name(request.user, request.kernel) }
    case 'clear':
      names.clear(request.epoch)
      return undefined
    case 'settings':
      builder.configure(request.settings)
      names.configure(request.settings)
      return undefined
    case 'shed':
      shed(request.bytes)
      return undefined
    case 'mark':
      tidy()
      return { kind: 'mark', mark: request.mark, state: names.state() }
  }
}

/** Frees the caches that are cheapest to rebuild first. */
function shed(bytes: number): void {
  const left = bytes - smallCaches.shed(bytes)
  builder.symbols.shed(left - names.perfMaps.shed(left))
}

/** Maintenance once per interval. */
function tidy(): void {
  builder.symbols.closeIdle()
  builder.decoder.closeIdle()
  names.closeEnded()
  const ids = builder.replaced()
  if (ids.length > 0) parentPort!.postMessage({ kind: 'replaced', ids } satisfies Answer)
}

/** Any error of a file affects only that file, which then has no table. */
function tableOf({ file, fd }: Extract<Request, { kind: 'file' }>): Answer {
  try {
    return builder.add(file, fd)
  } catch (error) {
    builder.note(file.path, errorText(error))
    return { kind: 'table', id: file.id, table: undefined, runtime: 0 }
  }
}

/** Tables are transferred, not copied. */
function transferOf(answer: Answer): ArrayBuffer[] {
  if (answer.kind !== 'table' || answer.table === undefined) return []
  const { rows, pages, rules } = answer.table
  return [...new Set([rows, pages, rules].map(({ buffer }) => buffer as ArrayBuffer))]
}
