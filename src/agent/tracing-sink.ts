import { type Logger, limitRepeats } from '../lib/logger.ts'
import type { Account } from '../pipeline/ledger.ts'
import type { CaptureSink } from '../probes/capture.ts'
import type { Streams } from '../tracing/streams.ts'
import type { Tracer } from '../tracing/tracer.ts'

export interface TracingSinkOptions {
  readonly tracer: Tracer
  readonly streams: Streams
  readonly account: Pick<Account, 'miss'>
  /** Exchanges that the kernel only counted. */
  readonly counted: (exchanges: number) => void
  /** Has the kernel pass on no more bytes of a connection. */
  readonly refuse: (connection: number) => void
  readonly log: Logger
}

/** Between two lines of the log about faults in one protocol, in milliseconds. */
const sayMs = 60_000

/**
 * Where a capture hands on what it saw. Whoever sends what a parser of svc fails on loses the span of that request, or what
 * its connection does from then on, and ends nothing else.
 */
export function tracingSink(options: TracingSinkOptions): CaptureSink {
  const { tracer, streams, account, counted, refuse, log } = options
  const repeated = limitRepeats(log, sayMs)
  const failed = (error: unknown, protocol: string): void => {
    account.miss('internal_error', 1)
    repeated('error', protocol, 'cannot decode a request; please report this', {
      protocol,
      error: stackOf(error),
    })
  }
  return {
    begin(exchange) {
      try {
        tracer.begin(exchange)
      } catch (error) {
        failed(error, exchange.protocol)
      }
    },
    exchange(exchange) {
      try {
        tracer.exchange(exchange)
      } catch (error) {
        failed(error, exchange.protocol)
      }
    },
    segment(segment) {
      try {
        streams.segment(segment)
      } catch (error) {
        failed(error, segment.protocol)
        streams.abandon(segment.connection)
        refuse(segment.connection)
      }
    },
    thread: (pid, parentTid, tid) => tracer.thread(pid, parentTid, tid),
    counted(exchange, count, sumNs, buckets) {
      tracer.counted(exchange, count, sumNs, buckets)
      counted(count)
    },
    skipped(exchanges) {
      tracer.lost(exchanges)
      account.miss('shutdown', exchanges)
    },
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
