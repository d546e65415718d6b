import { ByteRange } from '../../../../foundation/lib/byte-range.ts'

/** Messages of a server in -ERR (NATS client protocol, "+OK/-ERR"), in lower case, by prefix. */
const errors: readonly [text: string, error: string][] = [
  ['permissions violation', 'permissions_violation'],
  ['invalid subject', 'invalid_subject'],
  ['invalid publish subject', 'invalid_subject'],
  ['authorization violation', 'authorization_violation'],
  ['authentication timeout', 'authentication_timeout'],
  ['authentication expired', 'authentication_expired'],
  ['user authentication expired', 'authentication_expired'],
  ['user authentication revoked', 'authentication_revoked'],
  ['account authentication expired', 'authentication_expired'],
  ['unknown protocol operation', 'unknown_protocol_operation'],
  ['attempted to connect to route port', 'attempted_to_connect_to_route_port'],
  ['invalid client protocol', 'invalid_client_protocol'],
  ['maximum control line exceeded', 'maximum_control_line_exceeded'],
  ['maximum connections exceeded', 'maximum_connections_exceeded'],
  ['maximum payload violation', 'maximum_payload_violation'],
  ['maximum subscriptions exceeded', 'maximum_subscriptions_exceeded'],
  ['parser error', 'parser_error'],
  ['secure connection', 'secure_connection_required'],
  ['slow consumer', 'slow_consumer'],
  ['stale connection', 'stale_connection'],
]

const text = new ByteRange()
const quote = 0x27
const doubleQuote = 0x22

/** `error.type` of the text after -ERR. */
export function errorOfLine(bytes: Buffer, start: number, end: number): string {
  text.set(start, end)
  text.trim(bytes)
  if (!text.empty && bytes[text.start] === quote) text.start++
  for (const [begins, error] of errors) if (text.begins(bytes, begins)) return error
  return '_OTHER'
}

/** True for errors that leave the connection open. */
export function isViolation(error: string): boolean {
  return error === 'permissions_violation' || error === 'invalid_subject'
}

/** The subject without permission to publish; empty if the line has none. Reused. */
export function violatedSubject(bytes: Buffer, start: number, end: number): ByteRange {
  text.clear()
  let from = start
  while (from < end && bytes[from] !== doubleQuote) from++
  let to = from + 1
  while (to < end && bytes[to] !== doubleQuote) to++
  if (to < end) text.set(from + 1, to)
  return text
}
