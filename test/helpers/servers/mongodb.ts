// A server that speaks MongoDB's wire protocol well enough for its drivers, as a process of its own:
//   node test/helpers/servers/mongodb.ts [--compress]
// It prints {"port":N} when it listens, answers each line of its input by the commands so far as JSON, and ends with it.
//
// Collections are kept in memory. It refuses documents with `_id: "twice"` (11000) and filters with `fail` (2).
import { type ChildProcess, spawn } from 'node:child_process'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { deflateSync, inflateSync } from 'node:zlib'
import { BSON, type Document, Long, ObjectId } from 'mongodb'

const opcode = { reply: 1, query: 2004, compressed: 2012, message: 2013 }

/** The server, seen from a test. */
export class MongodbServer {
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

  static async start(options: { readonly compress?: boolean } = {}): Promise<MongodbServer> {
    const args = [import.meta.filename, ...(options.compress ? ['--compress'] : [])]
    const child = spawn(process.execPath, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    const replies = createInterface(child.stdout!)[Symbol.asyncIterator]()
    const { value } = await replies.next()
    const { port } = JSON.parse(value!) as { port: number }
    return new MongodbServer(child, replies, port)
  }

  get url(): string {
    return `mongodb://127.0.0.1:${this.port}/?directConnection=true`
  }

  /** Names of the commands that it has read, those of monitoring and of the handshake included. */
  async commands(): Promise<string[]> {
    this.#child.stdin!.write('commands\n')
    const { value } = await this.#replies.next()
    return JSON.parse(value!) as string[]
  }

  async close(): Promise<void> {
    const ended = new Promise(resolve => this.#child.once('close', resolve))
    this.#child.stdin!.end()
    await ended
  }
}

/** The commands, without a connection. */
export class Collections {
  readonly commands: string[] = []
  readonly #documents = new Map<string, Document[]>()
  readonly #cursors = new Map<number, { readonly name: string; readonly rest: Document[] }>()
  #numbers = 0
  readonly #compress: boolean

  constructor(compress = false) {
    this.#compress = compress
  }

  answer(command: Document): Document {
    const name = Object.keys(command)[0]!
    const place = `${command.$db}.${command[name]}`
    this.commands.push(name)
    if (['hello', 'isMaster', 'ismaster'].includes(name)) return this.#hello()
    if (name === 'ping' || name === 'endSessions') return { ok: 1 }
    if (name === 'drop') {
      this.#documents.delete(place)
      return { ok: 1 }
    }
    if (name === 'insert') return this.#insert(place, command.documents)
    if (name === 'find') {
      if (command.filter?.fail) return failure(2, 'BadValue')
      return this.#cursor(place, this.#of(place), command.batchSize ?? 101)
    }
    if (name === 'aggregate') return this.#cursor(place, this.#of(place), 101)
    if (name === 'getMore') return this.#more(command)
    if (name === 'killCursors') return { cursorsKilled: command.cursors, ok: 1 }
    if (name === 'update') return { n: 1, nModified: 1, ok: 1 }
    if (name === 'delete') {
      const n = this.#of(place).splice(0).length
      return { n, ok: 1 }
    }
    if (name === 'findAndModify')
      return { value: this.#of(place)[0] ?? null, lastErrorObject: { n: 1 }, ok: 1 }
    return failure(59, 'CommandNotFound')
  }

  #of(place: string): Document[] {
    let documents = this.#documents.get(place)
    if (documents === undefined) {
      documents = []
      this.#documents.set(place, documents)
    }
    return documents
  }

  #insert(place: string, documents: Document[]): Document {
    const refused = documents.findIndex(({ _id }) => _id === 'twice')
    const taken = refused < 0 ? documents : documents.slice(0, refused)
    this.#of(place).push(...taken)
    if (refused < 0) return { n: taken.length, ok: 1 }
    const writeErrors = [{ index: refused, code: 11_000, errmsg: 'E11000 duplicate key error' }]
    return { n: taken.length, writeErrors, ok: 1 }
  }

  #cursor(name: string, documents: Document[], batchSize: number): Document {
    const rest = documents.slice(batchSize)
    const id = rest.length > 0 ? ++this.#numbers : 0
    if (id > 0) this.#cursors.set(id, { name, rest })
    return { cursor: { firstBatch: documents.slice(0, batchSize), id: Long.fromNumber(id), ns: name }, ok: 1 }
  }

  #more(command: Document): Document {
    const number = Number(command.getMore)
    const cursor = this.#cursors.get(number)
    if (cursor === undefined) return failure(43, 'CursorNotFound')
    const nextBatch = cursor.rest.splice(0, command.batchSize ?? 101)
    const id = cursor.rest.length > 0 ? number : 0
    if (id === 0) this.#cursors.delete(number)
    return { cursor: { nextBatch, id: Long.fromNumber(id), ns: cursor.name }, ok: 1 }
  }

  #hello(): Document {
    return {
      helloOk: true,
      isWritablePrimary: true,
      ismaster: true,
      topologyVersion: { processId: new ObjectId('0123456789abcdef01234567'), counter: Long.fromNumber(0) },
      maxBsonObjectSize: 16_777_216,
      maxMessageSizeBytes: 48_000_000,
      maxWriteBatchSize: 100_000,
      localTime: new Date(),
      logicalSessionTimeoutMinutes: 30,
      connectionId: 1,
      minWireVersion: 0,
      maxWireVersion: 21,
      readOnly: false,
      ...(this.#compress ? { compression: ['zlib'] } : {}),
      ok: 1,
    }
  }
}

function failure(code: number, codeName: string): Document {
  return { ok: 0, errmsg: `${codeName} it is`, code, codeName }
}

/** One message: head, and what follows it. */
export function message(id: number, answers: number, code: number, content: Buffer): Buffer {
  const head = Buffer.alloc(16)
  head.writeInt32LE(16 + content.length, 0)
  head.writeInt32LE(id, 4)
  head.writeInt32LE(answers, 8)
  head.writeInt32LE(code, 12)
  return Buffer.concat([head, content])
}

/** OP_MSG with one document. */
export function opMsg(id: number, answers: number, document: Document, flags = 0): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32LE(flags, 0)
  return message(id, answers, opcode.message, Buffer.concat([head, BSON.serialize(document)]))
}

/** OP_COMPRESSED around another message, by zlib. */
export function compressed(whole: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeInt32LE(whole.readInt32LE(12), 0)
  head.writeInt32LE(whole.length - 16, 4)
  head[8] = 2
  const content = Buffer.concat([head, deflateSync(whole.subarray(16))])
  return message(whole.readInt32LE(4), whole.readInt32LE(8), opcode.compressed, content)
}

function opReply(id: number, answers: number, document: Document): Buffer {
  const head = Buffer.alloc(20)
  head.writeInt32LE(8, 0)
  head.writeInt32LE(1, 16)
  return message(id, answers, opcode.reply, Buffer.concat([head, BSON.serialize(document)]))
}

/** One client. */
class Client {
  readonly #socket: Socket
  readonly #collections: Collections
  #rest = Buffer.alloc(0)
  #id = 1_000_000
  #stream: NodeJS.Timeout | undefined

  constructor(socket: Socket, collections: Collections) {
    this.#socket = socket
    this.#collections = collections
    socket.on('data', bytes => this.#take(bytes))
    socket.on('error', () => {})
    socket.on('close', () => clearInterval(this.#stream))
  }

  #take(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
    while (this.#rest.length >= 4 && this.#rest.length >= this.#rest.readInt32LE(0)) {
      const whole = this.#rest.subarray(0, this.#rest.readInt32LE(0))
      this.#rest = this.#rest.subarray(whole.length)
      this.#answer(whole, false)
    }
  }

  #answer(whole: Buffer, inside: boolean): void {
    const id = whole.readInt32LE(4)
    const code = whole.readInt32LE(12)
    if (code === opcode.compressed) {
      const content = inflateSync(whole.subarray(25))
      this.#answer(message(id, 0, whole.readInt32LE(16), content), true)
    } else if (code === opcode.query) {
      const end = whole.indexOf(0, 20)
      const command = BSON.deserialize(whole.subarray(end + 9))
      this.#socket.write(opReply(++this.#id, id, this.#collections.answer(command)))
    } else {
      const flags = whole.readUInt32LE(16)
      const command = commandOf(whole)
      const reply = this.#collections.answer(command)
      if ((flags & 2) !== 0) return
      if ((flags & 0x10000) !== 0 && command.topologyVersion !== undefined) this.#watch(id, reply)
      else {
        const answer = opMsg(++this.#id, id, reply)
        this.#socket.write(inside ? compressed(answer) : answer)
      }
    }
  }

  /** Answers a hello that waits for news by one answer after the other, without being asked again. */
  #watch(id: number, reply: Document): void {
    let answers = id
    this.#stream = setInterval(() => {
      this.#id++
      this.#socket.write(opMsg(this.#id, answers, reply, 2))
      answers = this.#id
    }, 250)
  }
}

/** The document of a message, with those of its other sections in their place. */
function commandOf(whole: Buffer): Document {
  let command: Document = {}
  const rows: Record<string, Document[]> = {}
  for (let at = 20; at < whole.length; ) {
    const length = whole.readInt32LE(at + 1)
    if (whole[at] === 0) {
      command = BSON.deserialize(whole.subarray(at + 1, at + 1 + length))
    } else {
      const end = whole.indexOf(0, at + 5)
      const list: Document[] = []
      for (let from = end + 1; from < at + 1 + length; from += whole.readInt32LE(from))
        list.push(BSON.deserialize(whole.subarray(from, from + whole.readInt32LE(from))))
      rows[whole.toString('utf8', at + 5, end)] = list
    }
    at += 1 + length
  }
  return { ...command, ...rows }
}

function main(): void {
  const collections = new Collections(process.argv.includes('--compress'))
  const server = createServer(socket => new Client(socket, collections))
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as { port: number }
    process.stdout.write(`${JSON.stringify({ port })}\n`)
  })
  const lines = createInterface(process.stdin)
  lines.on('line', () => process.stdout.write(`${JSON.stringify(collections.commands)}\n`))
  lines.on('close', () => process.exit(0))
}

if (process.argv[1] === import.meta.filename) main()
