import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { isIP, isIPv6 } from 'node:net'
import { boolean, duration, integer, port, someText } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { loadNative, Unsupported } from '../../../kernel/native.ts'
import { collector, gauge } from './collector.ts'

const stratum = gauge('ntp_stratum', 'Distance of the server from a reference clock, in servers.')
const leap = gauge(
  'ntp_leap',
  'Leap indicator: none (0), a second more (1) or less (2) today, not in sync (3).',
)
const roundTrip = gauge('ntp_rtt_seconds', 'Time that question and answer were on the way.')
const offset = gauge('ntp_offset_seconds', "How far the server's clock is ahead of this host's.")
const referenceTime = gauge(
  'ntp_reference_timestamp_seconds',
  "When the server's clock was last set, in seconds since the Unix epoch.",
)
const rootDelay = gauge('ntp_root_delay_seconds', 'Time from the server to the reference clock and back.')
const rootDispersion = gauge('ntp_root_dispersion_seconds', "Error that the server's clock may have.")
const sanity = gauge('ntp_sanity', 'Whether the server is fit to set a clock by (1), or not (0).')

/** Size of a packet without options and signature (RFC 5905, section 7.3). */
const packetBytes = 48
const clientMode = 3
const serverMode = 4
const timeoutMs = 1000
/** Seconds from the epoch of NTP, 1900, to that of Unix. */
const epochSeconds = 2_208_988_800
const daySeconds = 86_400
const unsynchronized = 3
/** Limits of a usable server (RFC 5905, appendix A.5.1.1): age in seconds, distance in seconds, number of servers. */
const mostAge = 2 ** 17
const mostDispersion = 16
const leastBadStratum = 16

/** Answer of a server. Times are seconds since the Unix epoch, other values seconds. */
export interface NtpAnswer {
  readonly leap: number
  readonly stratum: number
  readonly rootDelay: number
  readonly rootDispersion: number
  readonly referenceTime: number
  readonly receiveTime: number
  readonly transmitTime: number
  /** Times of the request and the response on this host. */
  readonly sent: number
  readonly received: number
}

/** Time of an NTP server, queried over UDP. */
export const ntp = collector({
  name: 'ntp',
  summary: 'Time of an NTP server on this host (deprecated)',
  source: 'an NTP server',
  enabledByDefault: false,
  metrics: [stratum, leap, roundTrip, offset, referenceTime, rootDelay, rootDispersion, sanity],
  options: {
    server: key(
      someText,
      '127.0.0.1',
      'NTP server to ask: an address of this host, unless `server_is_local`.',
    ),
    server_port: key(port, 123, 'Port of the NTP server.'),
    server_is_local: key(boolean, false, 'Vouches that the server is on this host, whatever its address.'),
    protocol_version: key(integer({ min: 2, max: 4 }), 4, 'NTP version.'),
    ip_ttl: key(integer({ min: 1, max: 255 }), 1, 'Time to live of request packets.'),
    max_distance: key(duration(), 3466.08, 'Largest distance to the reference clock of a sane server.'),
    local_offset_tolerance: key(
      duration({ min: 0 }),
      1,
      'Offset to a local server that still counts as none.',
    ),
  },
  start(options) {
    const { server } = options
    if (!options.server_is_local && !isLoopback(server))
      throw new Error(
        `cannot query NTP server ${server}: not a loopback address; set server_is_local if it is on this host`,
      )
    let answer: NtpAnswer | undefined
    /** Midnight of the last leap second: its indicator is cleared immediately, but servers smear it over a day. */
    let leapMidnight = 0

    return {
      async wait(signal) {
        answer = undefined
        answer = await ask(options, signal)
      },
      collect(readings) {
        if (answer === undefined) throw new Error(`cannot query NTP server ${server}: cancelled`)
        const { sent, received, transmitTime, receiveTime } = answer
        const delay = Math.max(0, received - sent - (transmitTime - receiveTime))
        readings.set(stratum, answer.stratum)
        readings.set(leap, answer.leap)
        readings.set(roundTrip, delay)
        readings.set(offset, (receiveTime - sent + (transmitTime - received)) / 2)
        readings.set(referenceTime, Math.max(0, answer.referenceTime))
        readings.set(rootDelay, answer.rootDelay)
        readings.set(rootDispersion, answer.rootDispersion)

        if (answer.leap === 1 || answer.leap === 2)
          leapMidnight = (Math.floor(transmitTime / daySeconds) + 1) * daySeconds
        const isSmeared = Math.abs(transmitTime - leapMidnight) < daySeconds
        const tolerance = options.local_offset_tolerance / 1000 + (isSmeared ? 1 : 0)
        // A response time before its request shows a minimum error of the clocks.
        const leastError = Math.max(0, sent - receiveTime, transmitTime - received)
        const distance = (delay + answer.rootDelay) / 2 + answer.rootDispersion
        const isSane = isFit(answer) && distance <= options.max_distance / 1000 && leastError <= tolerance
        readings.set(sanity, isSane ? 1 : 0)
      },
    }
  },
})

function isFit(answer: NtpAnswer): boolean {
  const age = answer.transmitTime - answer.referenceTime
  return (
    answer.stratum > 0 &&
    answer.stratum < leastBadStratum &&
    answer.leap !== unsynchronized &&
    age >= 0 &&
    age <= mostAge &&
    answer.rootDelay / 2 + answer.rootDispersion <= mostDispersion
  )
}

function isLoopback(address: string): boolean {
  return isIP(address) !== 0 && (/^127\./.test(address) || /^[0:]*:0*1$/.test(address))
}

interface Question {
  readonly server: string
  readonly server_port: number
  readonly protocol_version: number
  readonly ip_ttl: number
}

/** Sends a request and returns the response. Rejects with a reason if there is none within a second. */
function ask(question: Question, signal: AbortSignal): Promise<NtpAnswer> {
  const { server, server_port } = question
  const failed = (why: string, cause?: unknown) =>
    new Error(`cannot query NTP server ${server} at port ${server_port}: ${why}`, { cause })
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(server) ? 'udp6' : 'udp4')
    const packet = Buffer.alloc(packetBytes)
    packet[0] = (question.protocol_version << 3) | clientMode
    // A random time, so that no other host can answer, nor learn the time of this host.
    const cookie = randomBytes(8)
    cookie.copy(packet, 40)
    let sent = 0

    const end = (settle: () => void) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.removeAllListeners().close()
      settle()
    }
    const onAbort = () => end(() => reject(failed('cancelled at the end of the scrape')))
    const timer = setTimeout(() => end(() => reject(failed('no answer within a second'))), timeoutMs)
    signal.addEventListener('abort', onAbort)
    socket.on('error', error => end(() => reject(failed(error.message, error))))
    socket.on('message', message => {
      end(() => {
        try {
          resolve(parseAnswer(message, cookie, sent, now()))
        } catch (error) {
          reject(failed((error as Error).message, error))
        }
      })
    })
    socket.on('connect', () => {
      try {
        socket.setTTL(question.ip_ttl)
        sent = now()
        socket.send(packet)
      } catch (error) {
        end(() => reject(failed((error as Error).message, error)))
      }
    })
    socket.connect(server_port, server)
  })
}

/** Parses a response. Throws an error with a reason if it does not belong to the request with this cookie. */
function parseAnswer(packet: Buffer, cookie: Buffer, sent: number, received: number): NtpAnswer {
  if (packet.length < packetBytes) throw new Error(`invalid response: ${packet.length} bytes`)
  if ((packet[0]! & 7) !== serverMode) throw new Error('invalid response: not from a server')
  if (!packet.subarray(24, 32).equals(cookie)) throw new Error('invalid response: for another request')
  const transmitTime = timestamp(packet, 40)
  const receiveTime = timestamp(packet, 32)
  if (packet.readUInt32BE(40) === 0 && packet.readUInt32BE(44) === 0)
    throw new Error('invalid response: no time')
  if (receiveTime > transmitTime) throw new Error('invalid response: the clock of the server ran backwards')
  return {
    leap: packet[0]! >> 6,
    stratum: packet[1]!,
    rootDelay: shortSeconds(packet, 4),
    rootDispersion: shortSeconds(packet, 8),
    referenceTime: timestamp(packet, 16),
    receiveTime,
    transmitTime,
    sent,
    received: Math.max(sent, received),
  }
}

/** 32 bits of seconds and 32 of fractions. Seconds before 1970 belong to the era from 2036 on. */
function timestamp(packet: Buffer, at: number): number {
  const seconds = packet.readUInt32BE(at) - epochSeconds
  return (seconds < 0 ? seconds + 2 ** 32 : seconds) + packet.readUInt32BE(at + 4) / 2 ** 32
}

/** 16 bits of seconds and 16 of fractions, to the nanosecond. */
function shortSeconds(packet: Buffer, at: number): number {
  return Math.round((packet.readUInt32BE(at) / 65_536) * 1e9) / 1e9
}

/** Time to the microsecond: JavaScript's clock has only milliseconds, the whole tolerance. */
function now(): number {
  const native = loadNative()
  return native instanceof Unsupported ? Date.now() / 1000 : native.clock().realtimeUs / 1e6
}
