// owns: ports
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, afterEach, before, test } from 'node:test'
import { AgentProcess, largeRing } from '../../helpers/agent-process.ts'
import { type MemcachedServer, startMemcached, withoutMemcached } from '../../helpers/servers/memcached.ts'
import { soak } from '../../helpers/soak.ts'
import { client, Telemetry } from '../../helpers/telemetry.ts'

const count = soak ? 5_000 : 300
const skip = withoutMemcached

let telemetry: Telemetry
let server: MemcachedServer
let agent: AgentProcess
/** Spans of the tests before. */
let earlier = 0

before(async () => {
  if (skip) return
  telemetry = await Telemetry.start()
  server = await startMemcached()
  agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [server.port],
    config: { agent: { ebpf: largeRing } },
  })
})

after(async () => {
  await agent?.stop()
  await server?.close()
  await telemetry?.close()
})

afterEach(() => {
  if (!skip) earlier = telemetry.spans(server.port).length
})

/** How many operations the metric has counted. */
function counted(): number {
  const ours = telemetry.counted(
    ({ metric, attributes }) =>
      metric === 'db.client.operation.duration' && attributes['server.port'] === server.port,
  )
  return ours.reduce((sum, { count }) => sum + count, 0)
}

/** A client that waits for what it expects to be answered. */
class Talk {
  readonly socket: Socket
  #received = Buffer.alloc(0)
  #wake: () => void = () => {}

  constructor() {
    this.socket = connect(server.port, '127.0.0.1')
    this.socket.on('data', bytes => {
      this.#received = Buffer.concat([this.#received, bytes as Buffer])
      this.#wake()
    })
  }

  /** Resolves when what came ends with `end`. */
  async ask(request: string | Buffer, end: string): Promise<void> {
    this.#received = Buffer.alloc(0)
    this.socket.write(typeof request === 'string' ? Buffer.from(request, 'latin1') : request)
    while (this.#received.subarray(-end.length).toString('latin1') !== end)
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
  }

  /** Resolves when a response with this opcode has come as a whole. */
  async askBinary(request: Buffer, code: number): Promise<void> {
    this.#received = Buffer.alloc(0)
    this.socket.write(request)
    for (let at = 0; ; ) {
      const { length } = this.#received
      const end = at + 24 > length ? length + 1 : at + 24 + this.#received.readUInt32BE(at + 8)
      if (end > length) {
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
      } else if (this.#received[at + 1] === code) return
      else at = end
    }
  }

  async close(): Promise<void> {
    const closed = new Promise(resolve => this.socket.once('close', resolve))
    this.socket.end()
    await closed
  }
}

async function told(atLeast: number): Promise<Record<string, number>> {
  await telemetry.arrived(earlier + atLeast, server.port)
  await telemetry.settle(agent)
  const counts: Record<string, number> = {}
  const spans = telemetry.spans(server.port)
  assert.equal(counted(), spans.length)
  for (const { name, kind, attributes } of spans.slice(earlier)) {
    assert.equal(kind, client)
    const key = `${name} ${attributes['error.type'] ?? ''}`.trim()
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

test('each command of the text protocol has one span', { skip }, async () => {
  const talk = new Talk()
  for (let i = 0; i < count; i++) {
    await talk.ask(`set key${i} 0 0 5\r\nhello\r\n`, 'STORED\r\n')
    await talk.ask(`get key${i} key${i + 1}\r\n`, 'END\r\n')
  }
  await talk.ask(`set big 0 0 100000\r\n${'x'.repeat(100_000)}\r\n`, 'STORED\r\n')
  await talk.ask('get big\r\n', 'END\r\n')
  await talk.ask('set n 0 0 1 noreply\r\n1\r\nincr n 1\r\n', '2\r\n')
  await talk.ask('incr big 1\r\n', 'value\r\n')
  await talk.ask('bogus\r\n', 'ERROR\r\n')
  await talk.ask('ms a 1 q\r\nx\r\nmg nope v q\r\nmg a v k q\r\nmn\r\n', 'MN\r\n')
  await talk.ask('stats\r\n', 'END\r\n')
  await talk.close()
  assert.deepEqual(await told(2 * count + 11), {
    set: count + 2,
    get: count + 1,
    incr: 1,
    'incr CLIENT_ERROR': 1,
    '_OTHER ERROR': 1,
    ms: 1,
    mg: 2,
    mn: 1,
    stats: 1,
  })
})

test('each command of the binary protocol has one span', { skip }, async () => {
  const packet = (code: number, key: string, extras = 0, value = '') => {
    const header = Buffer.alloc(24 + extras)
    header[0] = 0x80
    header[1] = code
    header.writeUInt16BE(key.length, 2)
    header[4] = extras
    header.writeUInt32BE(extras + key.length + value.length, 8)
    return Buffer.concat([header, Buffer.from(key + value)])
  }
  const talk = new Talk()
  await talk.askBinary(packet(1, 'b', 8, 'hello'), 1)
  for (let i = 0; i < count; i++) await talk.askBinary(packet(0, 'b'), 0)
  await talk.askBinary(packet(0, 'nope'), 0)
  await talk.askBinary(packet(5, 'b', 20), 5)
  const quiet = [packet(0x0d, 'b'), packet(0x0d, 'nope'), packet(0x11, 'c', 8, 'x'), packet(0x0a, '')]
  await talk.askBinary(Buffer.concat(quiet), 0x0a)
  await talk.close()
  assert.deepEqual(await told(count + 7), {
    set: 2,
    get: count + 3,
    'incr DELTA_BADVAL': 1,
    noop: 1,
  })
})
