import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { describeDatabase } from './database-call.ts'
import { CommandDescription } from './redis/description.ts'
import { RedisStream } from './redis/stream.ts'

/**
 * Redis and compatible servers (RESP2 and RESP3, redis.io/docs/reference/protocol-spec), reported by the conventions
 * for Redis clients 1.44. Every command is a separate operation, also in a pipeline and between MULTI and EXEC, where
 * its reply is QUEUED. A subscription ends when it is confirmed; published messages are not replies.
 *
 * `db.query.text` has a `?` for each argument. `error.type` and `db.response.status_code` are the first word of
 * an error reply (`ERR`, `WRONGTYPE`, `MOVED`), or `error.type` is as in failure.ts.
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
