import type { Operation, Segment } from './stream.ts'

/** Receives what a capture reads from the kernel. Its methods do not throw. */
export interface CaptureSink {
  /** A request that the kernel side frames has a complete head; fields of the response are not set yet. */
  begin(operation: Operation): void
  /** The same operation has ended. */
  end(operation: Operation): void
  /** Bytes of a connection that is read in user space. */
  segment(segment: Segment): void
  /** A thread started another thread of its process; ids are of the initial pid namespace. */
  thread(pid: number, parentTid: number, tid: number): void
  /**
   * Operations that the kernel only counted: `operation` holds their common properties. An HTTP/1 head is minimal, with
   * the target `*`, since the path is unknown. `sumNs`: sum of their durations; `buckets`: their histogram.
   */
  counted(operation: Operation, count: number, sumNs: number, buckets: ArrayLike<number>): void
  /** Operations that were recorded but not read for lack of time; nothing else is known about them. */
  skipped(operations: number): void
}
