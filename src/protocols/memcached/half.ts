import type { ByteFlow } from '../../lib/byte-flow.ts'

/** Reads one direction of a connection, in one of the two protocols. */
export interface Half {
  read(flow: ByteFlow): void
  lost(flow: ByteFlow): void
  /** The connection ended. */
  close?(): void
}
