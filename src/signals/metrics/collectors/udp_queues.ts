import { bytesIfPresent } from './_missing-file.ts'
import { collector, gauge, NoData } from './collector.ts'

const queues = gauge('udp_queues', 'Bytes of memory that wait in the queues of all UDP sockets.', {
  labels: ['ip', 'queue'],
  unit: 'By',
})

/** Queued data of UDP sockets, from /proc/net/{udp,udp6} (proc(5)). */
export const udp_queues = collector({
  name: 'udp_queues',
  summary: 'Bytes waiting in UDP sockets',
  source: '/proc/net/udp, udp6',
  enabledByDefault: true,
  metrics: [queues],
  start: (_options, { host }) => ({
    collect(readings) {
      let found = false
      for (const [ip, path] of files) {
        const bytes = bytesIfPresent(host.proc, path)
        if (bytes === undefined) continue
        found = true
        const { tx, rx } = sumQueues(bytes, path)
        readings.set(queues, tx, ip, 'tx')
        readings.set(queues, rx, ip, 'rx')
      }
      if (!found) throw new NoData(`${host.proc.at('net/udp')} and udp6 not found: this kernel has no IP`)
    },
  }),
})

const files = [
  ['v4', 'net/udp'],
  ['v6', 'net/udp6'],
] as const

const newline = 10
const space = 32
const colon = 58

/**
 * Sums of the fifth word, `tx_queue:rx_queue` in hexadecimal digits, of all lines except the first. A host with tens of
 * thousands of sockets has megabytes here, so only the two numbers are created from it.
 */
export function sumQueues(bytes: Buffer, path: string): { readonly tx: number; readonly rx: number } {
  const broken = () => new Error(`cannot read /proc/${path}: a line has no queues`)
  let tx = 0
  let rx = 0
  let at = lineEnd(bytes, 0)
  if (!bytes.subarray(0, at).includes('tx_queue rx_queue')) throw broken()
  for (at++; at < bytes.length; at = lineEnd(bytes, at) + 1) {
    for (let word = 0; word < 4; word++) {
      while (bytes[at] === space) at++
      while (at < bytes.length && bytes[at] !== space && bytes[at] !== newline) at++
    }
    while (bytes[at] === space) at++
    let sum = 0
    const start = at
    for (; bytes[at] !== colon; at++) sum = sum * 16 + digit(bytes, at, broken)
    tx += sum
    sum = 0
    const middle = ++at
    for (; bytes[at] !== space; at++) sum = sum * 16 + digit(bytes, at, broken)
    rx += sum
    if (middle - 1 === start || at === middle || at - start > 34) throw broken()
  }
  return { tx, rx }
}

/** End of the line, or of the file. */
function lineEnd(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(newline, from)
  return end < 0 ? bytes.length : end
}

function digit(bytes: Buffer, at: number, broken: () => Error): number {
  const code = bytes[at] ?? 0
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  if (letter >= 97 && letter <= 102) return letter - 87
  throw broken()
}
