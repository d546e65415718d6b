import type { ProtocolUnit } from '../../../foundation/model/protocol.ts'
import { amqp } from './amqp.ts'
import { dns } from './dns.ts'
import { http1 } from './http1.ts'
import { http2 } from './http2.ts'
import { kafka } from './kafka.ts'
import { memcached } from './memcached.ts'
import { mongodb } from './mongodb.ts'
import { mqtt } from './mqtt.ts'
import { mysql } from './mysql.ts'
import { nats } from './nats.ts'
import { postgres } from './postgres.ts'
import { redis } from './redis.ts'

/** All application protocols, in the order of the configuration and the documentation. */
export const protocols: readonly ProtocolUnit[] = [
  http1,
  http2,
  dns,
  postgres,
  mysql,
  redis,
  memcached,
  mongodb,
  kafka,
  amqp,
  mqtt,
  nats,
]
