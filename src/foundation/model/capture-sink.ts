import type { Operation, Segment } from './stream.ts'

/** Takes what a capture reads from the kernel. Its methods do not throw. */
export interface CaptureSink {
  /** A request that the kernel side frames, and whose head is whole: what is known of it so far. */
  begin(operation: Operation): void
  /** The same request and its response are over. */
  end(operation: Operation): void
  /** Bytes of a connection that is read in user space. */
  segment(segment: Segment): void
  /** A thread was started by another of its process; numbers of the initial pid namespace. */
  thread(pid: number, parentTid: number, tid: number): void
  /**
   * Operations that the kernel only counted: `operation` has what they share. Of HTTP/1 its head is as short as can be,
   * with the target `*`, since the path is not known. `sumNs`: of their durations; `buckets`: their histogram.
   */
  counted(operation: Operation, count: number, sumNs: number, buckets: ArrayLike<number>): void
  /** Operations that were recorded, and not read as there was no time: nothing else is known of them. */
  skipped(operations: number): void
}
