// The parts of MQTT 3.1, 3.1.1 and 5 needed to report its messages (OASIS MQTT 5.0, sections 2 and 3).

/** Types of control packets (section 2.1.2). */
export const packet = {
  connect: 1,
  connack: 2,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubrel: 6,
  pubcomp: 7,
  subscribe: 8,
  suback: 9,
  unsubscribe: 10,
  unsuback: 11,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
  auth: 15,
} as const

/** By type: 1 for a packet of the client, 2 for one of the server, 3 for both. */
const senders = [0, 1, 2, 3, 3, 3, 3, 3, 1, 2, 1, 2, 1, 2, 3, 3]

/** True if a packet may begin with this byte (section 2.1.3). MQTT 3.1 has a DUP flag in three more types. */
export function isFirstByte(byte: number, fromClient: boolean): boolean {
  const type = byte >> 4
  const flags = byte & 0xf
  if ((senders[type]! & (fromClient ? 1 : 2)) === 0) return false
  if (type === packet.publish) return (flags & 6) !== 6
  const fixed = type === packet.pubrel || type === packet.subscribe || type === packet.unsubscribe ? 2 : 0
  return flags === fixed || (fixed === 2 && flags === 10)
}

/** True if a packet of this type may have that many bytes after its fixed header. */
export function isLength(type: number, length: number): boolean {
  if (type === packet.pingreq || type === packet.pingresp) return length === 0
  if (type === packet.disconnect || type === packet.auth) return true
  if (type === packet.connect) return length >= 10
  if (type === packet.publish) return length >= 3
  return length >= 2
}

/** Reason codes from 0x80 on (MQTT 5.0, section 2.4). */
const reasons = [
  'unspecified_error',
  'malformed_packet',
  'protocol_error',
  'implementation_specific_error',
  'unsupported_protocol_version',
  'client_identifier_not_valid',
  'bad_user_name_or_password',
  'not_authorized',
  'server_unavailable',
  'server_busy',
  'banned',
  'server_shutting_down',
  'bad_authentication_method',
  'keep_alive_timeout',
  'session_taken_over',
  'topic_filter_invalid',
  'topic_name_invalid',
  'packet_identifier_in_use',
  'packet_identifier_not_found',
  'receive_maximum_exceeded',
  'topic_alias_invalid',
  'packet_too_large',
  'message_rate_too_high',
  'quota_exceeded',
  'administrative_action',
  'payload_format_invalid',
  'retain_not_supported',
  'qos_not_supported',
  'use_another_server',
  'server_moved',
  'shared_subscriptions_not_supported',
  'connection_rate_exceeded',
  'maximum_connect_time',
  'subscription_identifiers_not_supported',
  'wildcard_subscriptions_not_supported',
]

/** `error.type` of a reason code; '' for success. */
export function errorOfReason(code: number): string {
  return code < 0x80 ? '' : (reasons[code - 0x80] ?? '_OTHER')
}

/** Return codes of CONNACK in MQTT 3.1.1 (section 3.2.2.3), as the equivalent reason codes. */
const returnCodes = [0, 0x84, 0x85, 0x88, 0x86, 0x87]

/** `error.type` of CONNACK's code. */
export function errorOfConnack(code: number): string {
  return errorOfReason(returnCodes[code] ?? Math.max(code, 0x80))
}
