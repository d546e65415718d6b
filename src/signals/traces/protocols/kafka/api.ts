/** Keys of Kafka's requests (kafka.apache.org/protocol#protocol_api_keys) that are distinguished here. */
export const api = {
  produce: 0,
  fetch: 1,
  metadata: 3,
  controlledShutdown: 7,
  offsetCommit: 8,
  offsetFetch: 9,
  joinGroup: 11,
  heartbeat: 12,
  leaveGroup: 13,
  syncGroup: 14,
  consumerGroupHeartbeat: 68,
} as const

/** First flexible version (KIP-482) of each message read here, from the schemas of Kafka 4.1. */
const flexibleFrom = new Map<number, number>([
  [api.produce, 9],
  [api.fetch, 12],
  [api.metadata, 9],
  [api.offsetCommit, 8],
  [api.offsetFetch, 6],
  [api.joinGroup, 6],
  [api.heartbeat, 4],
  [api.leaveGroup, 4],
  [api.syncGroup, 4],
  [api.consumerGroupHeartbeat, 0],
])

/** Higher keys and versions are invalid. This leaves room for newer ones. */
const maxKey = 127
const maxVersion = 31
/** A broker accepts 100 MiB (socket.request.max.bytes), and a client requests 50 MiB (fetch.max.bytes) by default. */
const maxBytes = 256 * 2 ** 20
const maxClientBytes = 512

export function isFlexible(key: number, version: number): boolean {
  return version >= (flexibleFrom.get(key) ?? Number.POSITIVE_INFINITY)
}

/** Length, key, version, number, length of the client's name. */
export const requestHeadBytes = 14
/** Length and number. */
export const responseHeadBytes = 8

/** Length of the request at `at`; 0 if there is none. */
export function requestLength(bytes: Buffer, at: number): number {
  const length = bytes.readInt32BE(at)
  const key = bytes.readInt16BE(at + 4)
  const version = bytes.readInt16BE(at + 6)
  if (length < 10 || length > maxBytes || key < 0 || key > maxKey || version < 0 || version > maxVersion)
    return 0
  // The only request whose head has no name, between brokers.
  if (key === api.controlledShutdown && version === 0) return length + 4
  const name = bytes.readInt16BE(at + 12)
  return name >= -1 && name <= Math.min(maxClientBytes, length - 10) ? length + 4 : 0
}

/** Length of the response at `at`; 0 if there is none. */
export function responseLength(bytes: Buffer, at: number): number {
  const length = bytes.readInt32BE(at)
  return length >= 4 && length <= maxBytes ? length + 4 : 0
}

/**
 * Whether a request begins there: its head is valid, and its client's name is printable. Undefined if there are too few
 * bytes.
 */
export function requestBegins(bytes: Buffer, at: number, end: number): boolean | undefined {
  if (end - at < requestHeadBytes) {
    if (end - at < 4) return undefined
    const length = bytes.readInt32BE(at)
    return length < 10 || length > maxBytes ? false : undefined
  }
  if (requestLength(bytes, at) === 0 || bytes.readInt32BE(at + 8) < 0) return false
  const name = bytes.readInt16BE(at + 12)
  if (end - at < requestHeadBytes + name) return undefined
  for (let i = at + requestHeadBytes; i < at + requestHeadBytes + name; i++)
    if (bytes[i]! <= 0x20 || bytes[i]! >= 0x7f) return false
  return true
}
