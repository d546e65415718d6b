// owns: host
// What the socket programs note of the requests that threads work on, read as the sampler reads it.

import assert from 'node:assert/strict'
import { Agent, request as ask } from 'node:http'
import { request as askInside, Agent as SecureAgent } from 'node:https'
import { after, before, test } from 'node:test'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import { compileBpf, withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import { Program, pause, until } from '../../../test/helpers/program.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { requestNumber } from '../../foundation/model/request-number.ts'
import type { Operation } from '../../foundation/model/stream.ts'
import { BpfObject } from '../../kernel/bpf-object.ts'
import { readBtf } from '../../kernel/btf.ts'
import { readIterator } from '../../kernel/iterator.ts'
import type { LinkHandle } from '../../kernel/native.ts'
import { sock } from './sock.ts'
import { SocketCapture } from './socket-capture.ts'

const kernel = { skip: withoutBpf }
const rounds = soak ? 40 : 6

/** What a server answers: the thread that worked, and from when to when. */
interface Work {
  readonly tid: number
  readonly startNs: number
  readonly endNs: number
}

interface Ended {
  readonly path: string
  readonly number: number
  readonly tid: number
  readonly sampled: boolean
}

/** A request that a thread was seen at work on at some time in between. */
interface Sight {
  readonly tid: number
  readonly number: number
  readonly fromNs: number
  readonly toNs: number
}

let reader: Uint8Array

before(() => {
  if (!withoutBpf) reader = compileBpf('served')
})

/** A server, a capture that looks at it alone, and whoever reads what threads work on. */
class Watch {
  readonly ended: Ended[] = []
  readonly sights: Sight[] = []
  /** Of calls inside TLS: the number of what was received, and of what the answer says was worked on. */
  readonly calls: { readonly received: boolean; readonly number: number }[] = []
  readonly capture: SocketCapture
  readonly #native = nativeOrThrow()
  readonly #server: Program
  readonly #object: BpfObject
  readonly #link: LinkHandle
  #timer: NodeJS.Timeout | undefined

  constructor(server: Program, trackRequests = true) {
    this.#server = server
    const ignore = () => {}
    this.capture = new SocketCapture(
      this.#native,
      sock,
      {
        ringBytes: 1 << 20,
        perfBytes: 2 ** 20,
        backlogBytes: 0,
        captureBytes: 1024,
        protocols: ['http1'],
        includePorts: [server.ready.port],
        excludePorts: [],
        maxPerSecond: 0,
        alwaysErrors: true,
        alwaysSlow: true,
        slowNs: 1e9,
        boundsNs: Array.from({ length: 15 }, (_, i) => (i + 1) * 1e6),
      },
      {
        begin: ignore,
        thread: ignore,
        counted: ignore,
        skipped: () => {},
        end: each => this.#end(each),
        segment: ({ server, received, closed, tid, timeNs, served }) => {
          if (server && !closed)
            this.calls.push({ received, number: received ? requestNumber(tid, timeNs) : served })
        },
      },
    )
    this.capture.trackRequests(trackRequests)
    this.#object = BpfObject.load(this.#native, reader, {
      name: 'served',
      prepare: handle => this.#native.objectReuseMap(handle, 'requests', this.capture.requests),
    })
    const bss = readBtf(reader).sections.find(({ name }) => name === '.bss')!
    const { offset } = bss.fields.find(({ name }) => name === 'target_pid')!
    new Uint32Array(this.#native.mapView(this.#object.map('.bss')), offset, 1)[0] = server.pid
    this.#link = this.#object.attach('svc_served_all')
  }

  /** Looks every few milliseconds until it is told to stop. */
  look(): void {
    clearInterval(this.#timer)
    this.#timer = setInterval(() => this.glance(), 3)
  }

  /** What threads of the server work on now. */
  glance(): Sight[] {
    const fromNs = this.#native.clock().monotonicNs
    const { bytes } = readIterator(this.#native, this.#link, 65_536)
    const toNs = this.#native.clock().monotonicNs
    const seen: Sight[] = []
    for (let at = 0; at < bytes.length; at += 16)
      seen.push({
        number: Number(bytes.readBigUInt64LE(at)),
        tid: bytes.readUInt32LE(at + 8),
        fromNs,
        toNs,
      })
    this.sights.push(...seen)
    return seen
  }

  /** The end of a request that went by this path. */
  async endOf(path: string): Promise<Ended> {
    for (let tries = 0; tries < 2000; tries++) {
      this.capture.drain()
      const found = this.ended.find(each => each.path === path)
      if (found !== undefined) return found
      await pause(10)
    }
    throw new Error(`the request of ${path} did not end`)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#object.close()
    this.capture.close()
    await this.#server.close()
  }

  #end({ connection, head, startNs, tid, sampled }: Operation): void {
    if (!connection.server) return
    const path = head.bytes.toString('latin1', head.start, head.end).split(' ')[1]!
    this.ended.push({ path, number: requestNumber(tid, startNs), tid, sampled })
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 4 })
after(() => agent.destroy())

/** Asks, and returns what the server says of its work. `body` in pieces, one each 30 ms. */
function work(port: number, path: string, body: readonly string[] = []): Promise<Work> {
  return new Promise((resolve, reject) => {
    const headers = body.length > 0 ? { 'Content-Length': body.join('').length } : {}
    const sent = ask({
      port,
      host: '127.0.0.1',
      path,
      agent,
      method: body.length > 0 ? 'POST' : 'GET',
      headers,
    })
    sent.on('error', reject).on('response', response => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve(JSON.parse(text) as Work))
    })
    void send()
    async function send(): Promise<void> {
      for (const piece of body) {
        sent.write(piece)
        await pause(30)
      }
      sent.end()
    }
  })
}

/** Asks inside TLS for 40 ms of work. */
function secureWork(port: number, agent: SecureAgent): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = askInside({ port, host: '127.0.0.1', path: '/heavy/40', agent })
    sent.on('error', reject).on('response', response => response.resume().on('end', resolve))
    sent.end()
  })
}

test(
  'threads that wait in their calls are known to work on the request that they received',
  kernel,
  async () => {
    const server = await Program.start('burner.py')
    const watch = new Watch(server)
    try {
      const { port } = server.ready
      watch.look()
      const works = new Map<string, Work>()
      for (let round = 0; round < rounds; round++) {
        const paths = [0, 1, 2, 3].map(i => `/${i % 2 === 0 ? 'light/4' : 'heavy/40'}/${round}/${i}`)
        await Promise.all(paths.map(async path => works.set(path, await work(port, path))))
      }
      for (const path of works.keys()) await watch.endOf(path)
      const byNumber = new Map(watch.ended.map(each => [each.number, each]))
      assert.equal(byNumber.size, works.size)
      const met = new Set<number>()
      for (const { tid, number, fromNs, toNs } of watch.sights) {
        const working = [...works].find(
          ([, one]) => one.tid === tid && one.startNs <= fromNs && toNs <= one.endNs,
        )
        if (working === undefined) continue
        assert.equal(byNumber.get(number)?.path, working[0])
        met.add(number)
      }
      assert.ok(met.size > 0, 'some requests were met at work')
      for (const { number, sampled, path } of watch.ended)
        if (met.has(number)) assert.ok(sampled, `${path} was met and is not marked`)
      for (const { number, sampled, path } of watch.ended)
        if (!watch.sights.some(sight => sight.number === number)) assert.ok(!sampled, `${path} was not met`)
      assert.deepEqual(watch.glance(), [], 'all is answered')
    } finally {
      await watch.close()
    }
  },
)

/** What is seen while the server is at work on a request. */
async function during(watch: Watch, asked: Promise<Work>): Promise<Sight[]> {
  watch.look()
  const done = await asked
  return watch.sights.filter(({ fromNs, toNs }) => done.startNs <= fromNs && toNs <= done.endNs)
}

/**
 * The same of requests like it, until one was seen and all went `asMeant`: on a busy host a server may sleep all the
 * while.
 */
async function met(
  watch: Watch,
  ask: (path: string) => Promise<Work>,
  asMeant: () => boolean = () => true,
): Promise<void> {
  for (let i = 0; i < 20; i++) {
    const path = `/heavy/150/${i}`
    const seen = await during(watch, ask(path))
    const ended = await watch.endOf(path)
    for (const { number } of seen) assert.equal(number, ended.number, path)
    assert.equal(
      ended.sampled,
      watch.sights.some(({ number }) => number === ended.number),
      path,
    )
    if (seen.length > 0 && asMeant()) return
  }
  throw new Error('the server was never met at work')
}

async function withNode(body: (watch: Watch, port: number) => Promise<void>, track = true): Promise<void> {
  const server = await Program.start('burner-node.ts')
  const watch = new Watch(server, track)
  try {
    await body(watch, server.ready.port)
  } finally {
    await watch.close()
  }
}

test('an event loop is known to work on a request that it just received', kernel, () =>
  withNode(async (watch, port) => {
    await met(watch, path => work(port, path))
    assert.deepEqual(watch.glance(), [])
  }),
)

test('an event loop that slept since it received a request may work on anything', kernel, () =>
  withNode(async (watch, port) => {
    // One that is held up finds its timer due, and does not sleep.
    for (let i = 0; i < 3; i++) {
      const path = `/light/150/later/${i}`
      const seen = await during(watch, work(port, path))
      await watch.endOf(path)
      if (seen.length === 0) return
    }
    assert.fail('it was met at work each time')
  }),
)

test('more of a request tells again that an event loop works on it', kernel, () =>
  withNode(async (watch, port) => {
    await met(watch, path => work(port, path, ['first', 'second', 'last']))
  }),
)

test('an event loop that hears from another connection leaves its request', kernel, () =>
  withNode(async (watch, port) => {
    let isLeft = false
    const ask = async (path: string) => {
      // It waits for its timer, which is due while the other one is at work.
      const later = `/light/50/later${path}`
      const first = work(port, later)
      await pause(50)
      const second = await work(port, path)
      const one = await first
      const left = await watch.endOf(later)
      const other = await watch.endOf(path)
      // On a busy host it may be heard of last, or be done before the other one is heard of.
      if (left.number < other.number && second.startNs < one.startNs) {
        isLeft = true
        const since = watch.sights.filter(({ fromNs }) => fromNs >= second.startNs)
        assert.ok(!since.some(({ number }) => number === left.number))
        assert.ok(!left.sampled)
      }
      return second
    }
    await met(watch, ask, () => isLeft)
  }),
)

test('inside TLS, too, a thread is known to work on what it received, until it answers', kernel, async () => {
  const certificates = makeCertificates()
  const [certificate, key] = [certificates.file('server.pem'), certificates.file('server.key')]
  const server = await Program.start('burner.py', { certificate, key })
  const watch = new Watch(server)
  const tls = watch.capture.tls({ log: silentLogger })
  try {
    await tls.start()
    watch.look()
    const secure = new SecureAgent({ keepAlive: true, ca: certificates.text('ca.pem') })
    for (let round = 0; round < rounds; round++) await secureWork(server.ready.port, secure)
    secure.destroy()
    await until('all answers were told', 30_000, () => {
      watch.capture.drain()
      return watch.calls.filter(({ received }) => !received).length >= rounds
    })
    const numbers = new Set(watch.sights.map(({ number }) => number))
    assert.ok(numbers.size > 0, 'some requests were met at work')
    const received = new Set<number>()
    const answered = new Set<number>()
    for (const call of watch.calls)
      if (call.number !== 0) (call.received ? received : answered).add(call.number)
    assert.deepEqual(answered, numbers)
    for (const number of numbers) assert.ok(received.has(number))
  } finally {
    await tls.close()
    await watch.close()
    certificates.remove()
  }
})

test('nothing is noted where nobody asked', kernel, () =>
  withNode(async (watch, port) => {
    const seen = await during(watch, work(port, '/heavy/50'))
    assert.deepEqual(seen, [])
    assert.equal((await watch.endOf('/heavy/50')).sampled, false)
  }, false),
)

test('a map of another shape is not taken for the shared one', kernel, async () => {
  await withNode(async watch => {
    const native = nativeOrThrow()
    const handle = native.objectOpen(reader, 'served')
    try {
      const other = watch.capture.requests
      assert.throws(() => native.objectReuseMap(handle, '.bss', other), { code: 'EINVAL' })
      assert.throws(() => native.objectReuseMap(handle, 'nothing', other), { code: 'ENOENT' })
      native.objectReuseMap(handle, 'requests', other)
      assert.equal(native.objectLoad(handle).errno, 0)
      assert.throws(() => native.objectReuseMap(handle, 'requests', other), { code: 'EINVAL' })
    } finally {
      native.objectClose(handle)
    }
  })
})

test('numbers have 53 bits, differ by thread and time, and are never 0', () => {
  assert.equal(requestNumber(1, 0), 2 ** 31)
  assert.equal(requestNumber(1, 1023), 2 ** 31)
  assert.equal(requestNumber(7, 1024), 7 * 2 ** 31 + 1)
  assert.equal(requestNumber(4_194_303, 2 ** 50 - 1), 2 ** 53 - 1)
  const at = 7_777_777_777_777_777n
  const want = (4321n << 31n) | ((at >> 10n) & 0x7fffffffn)
  assert.equal(BigInt(requestNumber(4321, Number(at))), want)
})
