import { type Logger, limitRepeats } from '../../../foundation/lib/logger.ts'
import type { CaptureSink } from '../../../foundation/model/capture-sink.ts'
import type { Operation, Segment } from '../../../foundation/model/stream.ts'
import type { Streams } from './streams.ts'
import type { Tracer } from './tracer.ts'

export interface TracingSinkOptions {
  readonly tracer: Tracer
  readonly streams: Streams
  /** Counts operations that were lost, by reason. */
  readonly drop: (reason: string, operations: number) => void
  /** Called with operations that the kernel only counted. */
  readonly counted: (operations: number) => void
  /** Stops the kernel from passing on bytes of a connection, by its id. */
  readonly refuse: (connection: number) => void
  readonly log: Logger
}

/** Milliseconds between two log lines about faults in one protocol. */
const sayMs = 60_000

/**
 * Takes the records of a capture. Bytes on which an svc parser fails cost only the span of that request, or the later
 * spans of its connection.
 */
export class TracingSink implements CaptureSink {
  readonly #options: TracingSinkOptions
  readonly #tracer: Tracer
  readonly #streams: Streams
  readonly #repeated: ReturnType<typeof limitRepeats>

  constructor(options: TracingSinkOptions) {
    this.#options = options
    this.#tracer = options.tracer
    this.#streams = options.streams
    this.#repeated = limitRepeats(options.log, sayMs)
  }

  begin(operation: Operation): void {
    try {
      this.#tracer.begin(operation)
    } catch (error) {
      this.#failed(error, operation.connection.protocol)
    }
  }

  end(operation: Operation): void {
    try {
      this.#tracer.end(operation)
    } catch (error) {
      this.#failed(error, operation.connection.protocol)
    }
  }

  segment(segment: Segment): void {
    try {
      this.#streams.segment(segment)
    } catch (error) {
      this.#failed(error, segment.protocol)
      this.#streams.abandon(segment.connection)
      this.#options.refuse(segment.connection)
    }
  }

  thread(pid: number, parentTid: number, tid: number): void {
    this.#tracer.thread(pid, parentTid, tid)
  }

  counted(operation: Operation, count: number, sumNs: number, buckets: ArrayLike<number>): void {
    this.#tracer.counted(operation, count, sumNs, buckets)
    this.#options.counted(count)
  }

  skipped(operations: number): void {
    this.#tracer.lost('shutdown', operations)
  }

  #failed(error: unknown, protocol: string): void {
    this.#options.drop('internal_error', 1)
    this.#repeated('error', protocol, 'cannot decode a request; please report this', {
      protocol,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    })
  }
}
