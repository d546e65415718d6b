// A broker that speaks Kafka's protocol well enough for kafkajs, as a process of its own:
//   node test/helpers/servers/kafka.ts
// It prints {"port":N} when it listens, answers each line of its input by what it has counted, and ends with it.
//
// Every topic has two partitions, kept in memory. It refuses to keep anything for topics whose names begin with
// "refused" (29, TOPIC_AUTHORIZATION_FAILED).
import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { KafkaReader, KafkaWriter, kafkaResponse } from './kafka-wire.ts'

/** What a broker was asked for, and what came of it. */
export interface KafkaCounts {
  produced: number
  refused: number
  /** Answers with records, and the messages in them. */
  fetched: number
  messages: number
  /** Answers without any. */
  waited: number
}

/** The broker, seen from a test. */
export class KafkaServer {
  readonly port: number
  readonly pid: number
  readonly #child: ChildProcess
  readonly #replies: AsyncIterator<string>

  private constructor(child: ChildProcess, replies: AsyncIterator<string>, port: number) {
    this.#child = child
    this.#replies = replies
    this.port = port
    this.pid = child.pid!
  }

  static async start(): Promise<KafkaServer> {
    const child = spawn(process.execPath, [import.meta.filename], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    const replies = createInterface(child.stdout!)[Symbol.asyncIterator]()
    const { value } = await replies.next()
    const { port } = JSON.parse(value!) as { port: number }
    return new KafkaServer(child, replies, port)
  }

  async counts(): Promise<KafkaCounts> {
    this.#child.stdin!.write('counts\n')
    const { value } = await this.#replies.next()
    return JSON.parse(value!) as KafkaCounts
  }

  async close(): Promise<void> {
    const ended = new Promise(resolve => this.#child.once('close', resolve))
    this.#child.stdin!.end()
    await ended
  }
}

/** Versions that it speaks, by key. */
const versions: readonly (readonly [key: number, version: number])[] = [
  [0, 7],
  [1, 11],
  [2, 3],
  [3, 5],
  [8, 5],
  [9, 4],
  [10, 2],
  [11, 5],
  [12, 3],
  [13, 2],
  [14, 3],
  [18, 1],
]

const partitions = [0, 1]
const denied = 29

interface Batch {
  readonly base: number
  readonly count: number
  readonly bytes: Buffer
}

class Broker {
  readonly counts: KafkaCounts = { produced: 0, refused: 0, fetched: 0, messages: 0, waited: 0 }
  port = 0
  readonly #logs = new Map<string, Batch[]>()
  readonly #committed = new Map<string, number>()
  readonly #waiting = new Set<() => void>()
  #generation = 0
  #assignment: Buffer = Buffer.alloc(0)

  /** Answers to a request; undefined: there is none. */
  async answer(key: number, version: number, read: KafkaReader): Promise<Buffer | undefined> {
    const write = new KafkaWriter()
    if (key === 18) this.#versions(write)
    else if (key === 0) return this.#produce(read, write)
    else if (key === 1) await this.#fetch(read, write)
    else if (key === 2) this.#offsets(read, write)
    else if (key === 3) this.#metadata(read, write)
    else if (key === 8) this.#commit(read, write)
    else if (key === 9) this.#committedOffsets(read, write)
    else if (key === 10) write.int32(0).int16(0).text(null).int32(1).text('127.0.0.1').int32(this.port)
    else if (key === 11) this.#join(read, write)
    else if (key === 14) this.#sync(read, write)
    else if (key === 12 || key === 13) write.int32(0).int16(0)
    else throw new Error(`no request with key ${key}, version ${version}`)
    return write.bytes
  }

  #versions(write: KafkaWriter): void {
    write
      .int16(0)
      .list(versions, ([key, version]) => write.int16(key).int16(version).int16(version))
      .int32(0)
  }

  #metadata(read: KafkaReader, write: KafkaWriter): void {
    const topics = read.list(() => read.text())
    write
      .int32(0)
      .list([1], node => write.int32(node).text('127.0.0.1').int32(this.port).text(null))
      .text('cluster')
      .int32(1)
      .list(topics, topic => {
        write.int16(0).text(topic).int8(0)
        write.list(partitions, partition => {
          write.int16(0).int32(partition).int32(1)
          for (const nodes of [[1], [1], []]) write.list(nodes, node => write.int32(node))
        })
      })
  }

  #produce(read: KafkaReader, write: KafkaWriter): Buffer | undefined {
    read.text()
    const acks = read.int16()
    read.int32()
    const topics = read.list(() => ({
      name: read.text(),
      parts: read.list(() => ({ partition: read.int32(), records: read.content() })),
    }))
    this.counts.produced++
    if (topics.some(({ name }) => name.startsWith('refused'))) this.counts.refused++
    write.list(topics, ({ name, parts }) => {
      write.text(name).list(parts, ({ partition, records }) => {
        const refused = name.startsWith('refused')
        const base = refused ? -1 : this.#append(name, partition, records)
        write
          .int32(partition)
          .int16(refused ? denied : 0)
          .int64(base)
          .int64(-1)
          .int64(0)
      })
    })
    for (const wake of this.#waiting) wake()
    return acks === 0 ? undefined : write.int32(0).bytes
  }

  #append(topic: string, partition: number, records: Buffer): number {
    const log = this.#log(topic, partition)
    const base = endOf(log)
    const bytes = Buffer.from(records)
    bytes.writeBigInt64BE(BigInt(base))
    log.push({ base, count: bytes.readInt32BE(57), bytes })
    return base
  }

  async #fetch(read: KafkaReader, write: KafkaWriter): Promise<void> {
    read.int32()
    const waitMs = read.int32()
    for (let skip = 0; skip < 2; skip++) read.int32()
    read.int8()
    for (let skip = 0; skip < 2; skip++) read.int32()
    const topics = read.list(() => ({
      name: read.text(),
      parts: read.list(() => {
        const partition = read.int32()
        read.int32()
        const offset = read.int64()
        read.int64()
        read.int32()
        return { partition, offset }
      }),
    }))
    const found = () =>
      topics.some(({ name, parts }) =>
        parts.some(({ partition, offset }) => endOf(this.#log(name, partition)) > offset),
      )
    if (!found()) await this.#news(waitMs, found)
    if (found()) this.counts.fetched++
    else this.counts.waited++
    write.int32(0).int16(0).int32(0)
    write.list(topics, ({ name, parts }) => {
      write.text(name).list(parts, ({ partition, offset }) => {
        const log = this.#log(name, partition)
        const batches = log.filter(({ base, count }) => base + count > offset)
        for (const { count } of batches) this.counts.messages += count
        const end = endOf(log)
        write
          .int32(partition)
          .int16(0)
          .int64(end)
          .int64(end)
          .int64(0)
          .list([], () => {})
          .int32(-1)
        write.content(Buffer.concat(batches.map(({ bytes }) => bytes)))
      })
    })
  }

  async #news(waitMs: number, found: () => boolean): Promise<void> {
    await new Promise<void>(resolve => {
      const end = () => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        resolve()
      }
      const wake = () => {
        if (found()) end()
      }
      const timer = setTimeout(end, waitMs)
      this.#waiting.add(wake)
    })
  }

  #offsets(read: KafkaReader, write: KafkaWriter): void {
    read.int32()
    read.int8()
    const topics = read.list(() => ({
      name: read.text(),
      parts: read.list(() => ({ partition: read.int32(), time: read.int64() })),
    }))
    write.int32(0).list(topics, ({ name, parts }) => {
      write.text(name).list(parts, ({ partition, time }) => {
        const offset = time === -2 ? 0 : endOf(this.#log(name, partition))
        write.int32(partition).int16(0).int64(-1).int64(offset)
      })
    })
  }

  #commit(read: KafkaReader, write: KafkaWriter): void {
    read.text()
    read.int32()
    read.text()
    const topics = read.list(() => ({
      name: read.text(),
      parts: read.list(() => {
        const partition = read.int32()
        const offset = read.int64()
        read.text()
        return { partition, offset }
      }),
    }))
    write.int32(0).list(topics, ({ name, parts }) => {
      write.text(name).list(parts, ({ partition, offset }) => {
        this.#committed.set(`${name} ${partition}`, offset)
        write.int32(partition).int16(0)
      })
    })
  }

  #committedOffsets(read: KafkaReader, write: KafkaWriter): void {
    read.text()
    const topics = read.list(() => ({ name: read.text(), parts: read.list(() => read.int32()) }))
    write
      .int32(0)
      .list(topics, ({ name, parts }) => {
        write.text(name).list(parts, partition => {
          const offset = this.#committed.get(`${name} ${partition}`) ?? -1
          write.int32(partition).int64(offset).text(null).int16(0)
        })
      })
      .int16(0)
  }

  /** Each member has the group for itself. */
  #join(read: KafkaReader, write: KafkaWriter): void {
    read.text()
    for (let skip = 0; skip < 2; skip++) read.int32()
    const member = read.text() || 'member-1'
    read.text()
    read.text()
    const protocols = read.list(() => ({ name: read.text(), metadata: read.content() }))
    const { name, metadata } = protocols[0]!
    write
      .int32(0)
      .int16(0)
      .int32(++this.#generation)
      .text(name)
      .text(member)
      .text(member)
    write.list([member], id => write.text(id).text(null).content(metadata))
  }

  #sync(read: KafkaReader, write: KafkaWriter): void {
    read.text()
    read.int32()
    read.text()
    read.text()
    const assignments = read.list(() => ({ member: read.text(), assignment: read.content() }))
    this.#assignment = assignments[0]?.assignment ?? this.#assignment
    write.int32(0).int16(0).content(this.#assignment)
  }

  #log(topic: string, partition: number): Batch[] {
    const name = `${topic} ${partition}`
    let log = this.#logs.get(name)
    if (log === undefined) {
      log = []
      this.#logs.set(name, log)
    }
    return log
  }
}

function endOf(log: readonly Batch[]): number {
  const last = log.at(-1)
  return last === undefined ? 0 : last.base + last.count
}

/** Answers one client's requests, one after the other. */
async function serve(socket: Socket, broker: Broker): Promise<void> {
  let rest = Buffer.alloc(0)
  for await (const bytes of socket) {
    rest = Buffer.concat([rest, bytes as Buffer])
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const whole = rest.subarray(0, 4 + rest.readInt32BE(0))
      rest = rest.subarray(whole.length)
      const [key, version] = [whole.readInt16BE(4), whole.readInt16BE(6)]
      const body = 14 + Math.max(0, whole.readInt16BE(12))
      const answer = await broker.answer(key, version, new KafkaReader(whole, body))
      if (answer !== undefined) socket.write(kafkaResponse(whole.readInt32BE(8), answer))
    }
  }
}

function main(): void {
  const broker = new Broker()
  const server = createServer(socket => {
    socket.on('error', () => {})
    serve(socket, broker).catch(() => socket.destroy())
  })
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as { port: number }
    broker.port = port
    process.stdout.write(`${JSON.stringify({ port })}\n`)
  })
  const lines = createInterface(process.stdin)
  lines.on('line', () => process.stdout.write(`${JSON.stringify(broker.counts)}\n`))
  lines.on('close', () => process.exit(0))
}

if (process.argv[1] === import.meta.filename) main()
