import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { describeDatabase } from './database-call.ts'
import { CommandDescription } from './redis/description.ts'
import { RedisStream } from './redis/stream.ts'

/**
 * Redis and what speaks like it (RESP2 and RESP3, redis.io/docs/reference/protocol-spec), told in the conventions for
 * Redis clients 1.44. Every command is an operation of its own, also in a pipeline and between MULTI and EXEC, where its
 * reply is QUEUED. A subscription ends when it is confirmed; published messages are nobody's replies.
 *
 * `db.query.text` has a mark for each argument. `error.type` and `db.response.status_code` are the word that an error
 * reply begins with (`ERR`, `WRONGTYPE`, `MOVED`), or `error.type` is as in failure.ts.
 */
export const redis: ProtocolUnit = {
  name: 'redis',
  title: 'Redis',
  summary: 'Commands to Redis.',
  key: 'redis',
  confidence: 'command',
  counted: true,
  peerKind: 'store',
  create: () => new Redis(),
}

class Redis implements Protocol {
  readonly name = redis.name
  readonly #telling = new CommandDescription()

  fillCall({ connection, call }: Operation): boolean {
    const { peerAddress, peerPort } = connection
    describeDatabase(call, redis.name, peerAddress, peerPort)
    return true
  }

  open(connection: StreamConnection): StreamDecoder {
    return new RedisStream(this.#telling, connection)
  }
}
