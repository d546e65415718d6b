import { Interner } from '../../../foundation/lib/interner.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { describeDatabase } from './database-call.ts'
import { MemcachedStream } from './memcached/stream.ts'

/**
 * Memcached: the text protocol with its meta commands (doc/protocol.txt of memcached 1.6) and the binary one, told in the
 * conventions for database clients 1.44. A retrieval is one operation, however many keys it names. A quiet one ends with
 * the response to a later one, as only that says that it had none; one with `noreply` ends when it is asked.
 *
 * `error.type` and `db.response.status_code` are `ERROR`, `CLIENT_ERROR` or `SERVER_ERROR`, of the binary protocol the
 * status' name (`E2BIG`, `AUTH_ERROR`) and number; `error.type` may be as in failure.ts. That an item is not there, is
 * there already or was changed is no error.
 */
export const memcached: ProtocolUnit = {
  name: 'memcached',
  title: 'memcached',
  summary: 'Commands to memcached.',
  key: 'memcached',
  confidence: 'command',
  counted: true,
  peerKind: 'store',
  create: () => new Memcached(),
}

class Memcached implements Protocol {
  readonly name = memcached.name
  /** For words of either side. */
  readonly #words = small(new Interner({ slots: 256, maxLength: 32 }))

  fillCall({ connection, call }: Operation): boolean {
    const { peerAddress, peerPort } = connection
    describeDatabase(call, memcached.name, peerAddress, peerPort)
    return true
  }

  open(connection: StreamConnection): StreamDecoder {
    return new MemcachedStream(this.#words, connection)
  }
}
