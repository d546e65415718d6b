// The parts of AMQP 0-9-1 needed to report its messages (specification, sections 1.3 and 4.2; RabbitMQ's extensions).

/** Frame types (section 4.2.3). */
export const frame = { method: 1, header: 2, body: 3, heartbeat: 8 } as const
/** The octet at the end of each frame. */
export const frameEnd = 0xce

/** Class and method as one number. */
export const method = {
  connectionTuneOk: 0x0a001f,
  connectionClose: 0x0a0032,
  channelOpen: 0x14000a,
  channelClose: 0x140028,
  channelCloseOk: 0x140029,
  consume: 0x3c0014,
  consumeOk: 0x3c0015,
  cancel: 0x3c001e,
  publish: 0x3c0028,
  return: 0x3c0032,
  deliver: 0x3c003c,
  get: 0x3c0046,
  getOk: 0x3c0047,
  getEmpty: 0x3c0048,
  ack: 0x3c0050,
  reject: 0x3c005a,
  recoverAsync: 0x3c0064,
  recover: 0x3c006e,
  nack: 0x3c0078,
  confirmSelect: 0x55000a,
} as const

/** Senders of a method. */
const client = 1
const server = 2
const either = client | server

/** By class: methods with their senders. */
const senders = new Map<number, number>()
for (const [classId, methods] of [
  [10, { 10: server, 11: client, 20: server, 21: client, 30: server, 31: client, 40: client, 41: server }],
  [10, { 50: either, 51: either, 60: server, 61: server, 70: client, 71: server }],
  [20, { 10: client, 11: server, 20: either, 21: either, 40: either, 41: either }],
  [30, { 10: client, 11: server }],
  [40, { 10: client, 11: server, 20: client, 21: server, 30: client, 31: server, 40: client, 51: server }],
  [50, { 10: client, 11: server, 20: client, 21: server, 30: client, 31: server, 40: client, 41: server }],
  [50, { 50: client, 51: server }],
  [60, { 10: client, 11: server, 20: client, 21: server, 30: either, 31: either, 40: client, 50: server }],
  [60, { 60: server, 70: client, 71: server, 72: server, 80: either, 90: client, 100: client }],
  [60, { 110: client, 111: server, 120: either }],
  [85, { 10: client, 11: server }],
  [90, { 10: client, 11: server, 20: client, 21: server, 30: client, 31: server }],
] as const)
  for (const [methodId, from] of Object.entries(methods))
    senders.set((classId << 16) | Number(methodId), from)

/** True for a method that this side may send. */
export function isMethod(id: number, fromClient: boolean): boolean {
  return ((senders.get(id) ?? 0) & (fromClient ? client : server)) !== 0
}

/** Names of the reply codes (section 1.2, constants). */
const replies = new Map([
  [311, 'content_too_large'],
  [312, 'no_route'],
  [313, 'no_consumers'],
  [320, 'connection_forced'],
  [402, 'invalid_path'],
  [403, 'access_refused'],
  [404, 'not_found'],
  [405, 'resource_locked'],
  [406, 'precondition_failed'],
  [501, 'frame_error'],
  [502, 'syntax_error'],
  [503, 'command_invalid'],
  [504, 'channel_error'],
  [505, 'unexpected_frame'],
  [506, 'resource_error'],
  [530, 'not_allowed'],
  [540, 'not_implemented'],
  [541, 'internal_error'],
])

/** `error.type` of a reply code; '' for 200 (success). */
export function errorOfReply(code: number): string {
  return code === 200 ? '' : (replies.get(code) ?? '_OTHER')
}
