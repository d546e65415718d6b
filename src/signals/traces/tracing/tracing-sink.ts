import { type Logger, limitRepeats } from '../../../foundation/lib/logger.ts'
import type { DropReasonName } from '../../../foundation/model/drop-reasons.ts'
import type { Operation, Segment } from '../../../foundation/model/stream.ts'
import type { Streams } from './streams.ts'
import type { Tracer } from './tracer.ts'

export interface TracingSinkOptions {
  readonly tracer: Tracer
  readonly streams: Streams
  /** Counts operations that were lost, by reason. */
  readonly drop: (reason: DropReasonName, operations: number) => void
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
export class TracingSink {
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

  /** A request that the kernel side frames has a complete head; fields of the response are not set yet. */
  begin(operation: Operation): void {
    try {
      this.#tracer.begin(operation)
    } catch (error) {
      this.#failed(error, operation.connection.protocol)
    }
  }

  /** The same operation has ended. */
  end(operation: Operation): void {
    try {
      this.#tracer.end(operation)
    } catch (error) {
      this.#failed(error, operation.connection.protocol)
    }
  }

  /** Bytes of a connection that is read in user space. */
  segment(segment: Segment): void {
    try {
      this.#streams.segment(segment)
    } catch (error) {
      this.#failed(error, segment.protocol)
      this.#streams.abandon(segment.connection)
      this.#options.refuse(segment.connection)
    }
  }

  /** A thread started another thread of its process; ids are of the initial pid namespace. */
  thread(pid: number, parentTid: number, tid: number): void {
    this.#tracer.thread(pid, parentTid, tid)
  }

  /**
   * Operations that the kernel only counted: `operation` holds their common properties. An HTTP/1 head is minimal, with
   * the target `*`, since the path is unknown. `sumNs`: sum of their durations; `buckets`: their histogram.
   */
  counted(operation: Operation, count: number, sumNs: number, buckets: ArrayLike<number>): void {
    this.#tracer.counted(operation, count, sumNs, buckets)
    this.#options.counted(count)
  }

  /** Operations that were recorded but not read for lack of time; nothing else is known about them. */
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
