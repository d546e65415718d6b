import { CapturedHead, Connection } from '../../src/foundation/model/connection.ts'
import { Operation } from '../../src/foundation/model/stream.ts'

type Own = Pick<
  Operation,
  | 'startNs'
  | 'responseNs'
  | 'endNs'
  | 'durationNs'
  | 'requestBytes'
  | 'responseBytes'
  | 'requestBodyBytes'
  | 'responseBodyBytes'
  | 'status'
  | 'aborted'
  | 'errno'
  | 'sequence'
  | 'tid'
  | 'blocking'
  | 'sampled'
>
type OfConnection = Omit<Connection, 'serverAddress' | 'serverPort' | 'clientAddress' | 'clientPort'>

/** Fields of an operation and of its connection, and its head: as text, or its fields. */
export type GivenOperation = Partial<Own & OfConnection> & { readonly head?: string | Partial<CapturedHead> }

/** An operation as the kernel side frames it. What is not given is empty; `durationNs` sets the end. */
export function kernelOperation({ head = '', durationNs, ...given }: GivenOperation): Operation {
  const connection = new Connection()
  const operation = new Operation(connection, new CapturedHead())
  for (const [key, value] of Object.entries(given))
    Object.assign(key in connection ? connection : operation, { [key]: value })
  if (typeof head === 'string') setHead(operation, head)
  else Object.assign(operation.head, head)
  if (durationNs !== undefined) operation.endNs = operation.startNs + durationNs
  return operation
}

/** Gives it another head: text in Latin-1, or bytes. */
export function setHead({ head }: Operation, text: string | Buffer): void {
  head.bytes = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
  head.start = 0
  head.end = head.bytes.length
}
