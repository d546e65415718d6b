// A server of DNS over UDP (RFC 1035) that answers as a test wants it to.

import { createSocket, type Socket } from 'node:dgram'
import type { AddressInfo } from 'node:net'

/** Data of a record, by the type of the question. */
export type DnsRecord =
  | { readonly type: 'A' | 'AAAA'; readonly address: readonly number[] }
  | { readonly type: 'NS' | 'CNAME'; readonly name: string }
  | { readonly type: 'MX'; readonly priority: number; readonly name: string }
  | { readonly type: 'SRV'; readonly port: number; readonly name: string }

const types: Readonly<Record<string, number>> = { A: 1, NS: 2, CNAME: 5, MX: 15, AAAA: 28, SRV: 33 }

/** An empty list is a name without such records; a name that is not there does not exist; `silent` answers nothing. */
export type Zone = Record<string, readonly DnsRecord[] | 'servfail' | 'silent'>

export class DnsServer {
  zone: Zone = {}
  readonly asked: string[] = []
  readonly #socket: Socket

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', (message, { port, address }) => {
      const answer = this.#answer(message)
      if (answer !== undefined) socket.send(answer, port, address)
    })
  }

  static async start(): Promise<DnsServer> {
    const socket = createSocket('udp4')
    await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
    return new DnsServer(socket)
  }

  get address(): string {
    return `127.0.0.1:${(this.#socket.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    await new Promise<void>(resolve => this.#socket.close(() => resolve()))
  }

  #answer(question: Buffer): Buffer | undefined {
    const labels: string[] = []
    let at = 12
    for (; question[at] !== 0; at += 1 + question[at]!)
      labels.push(question.toString('latin1', at + 1, at + 1 + question[at]!))
    const end = at + 5
    const name = labels.join('.')
    this.asked.push(name)
    const found = this.zone[name]
    if (found === 'silent') return undefined
    const code = found === undefined ? 3 : found === 'servfail' ? 2 : 0
    const records = Array.isArray(found) ? (found as readonly DnsRecord[]) : []
    const head = Buffer.from(question.subarray(0, 12))
    head.writeUInt16BE(0x8180 | code, 2)
    head.writeUInt16BE(records.length, 6)
    head.writeUInt32BE(0, 8)
    const answers = records.map(record => {
      const data = dataOf(record)
      const fixed = Buffer.alloc(12)
      fixed.writeUInt16BE(0xc00c, 0)
      fixed.writeUInt16BE(types[record.type]!, 2)
      fixed.writeUInt16BE(1, 4)
      fixed.writeUInt32BE(1, 6)
      fixed.writeUInt16BE(data.length, 10)
      return Buffer.concat([fixed, data])
    })
    return Buffer.concat([head, question.subarray(12, end), ...answers])
  }
}

function dataOf(record: DnsRecord): Buffer {
  switch (record.type) {
    case 'A':
    case 'AAAA':
      return Buffer.from(record.address)
    case 'NS':
    case 'CNAME':
      return nameBytes(record.name)
    case 'MX':
      return Buffer.concat([shorts(record.priority), nameBytes(record.name)])
    case 'SRV':
      return Buffer.concat([shorts(10, 5, record.port), nameBytes(record.name)])
  }
}

function shorts(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length)
  for (const [at, value] of values.entries()) bytes.writeUInt16BE(value, 2 * at)
  return bytes
}

function nameBytes(name: string): Buffer {
  const parts = name.split('.').map(label => Buffer.from([label.length, ...Buffer.from(label)]))
  return Buffer.concat([...parts, Buffer.from([0])])
}
