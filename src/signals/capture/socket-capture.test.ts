// owns: host
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { EmptyGroup } from '../../../test/helpers/empty-group.ts'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import { type Peers, startPeers } from '../../../test/helpers/peers.ts'
import { Program, until } from '../../../test/helpers/program.ts'
import { head } from '../../../test/helpers/raw-talk.ts'
import { every } from '../../foundation/lib/shared-ticks.ts'
import type { Operation } from '../../foundation/model/stream.ts'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import { countedMaps, loadedMaps, loadedPrograms } from '../../kernel/loaded.ts'
import { MapEntries } from '../../kernel/map-entries.ts'
import type { CaptureBackend, CaptureOptions } from './capture.ts'
import { sock } from './sock.ts'
import { SocketCapture } from './socket-capture.ts'

let peers: Peers

before(async () => {
  peers = await startPeers()
})

after(() => peers.close())

/** What came of the exchanges between client and server, the only ones that are looked at. */
class Seen {
  readonly records: { server: boolean; status: number; sequence: number; pid: number; path: string }[] = []
  /** By side and status. */
  readonly counts = new Map<string, number>()
  counted = 0
  begun = 0
  /** That any process of the host started. */
  threads = 0

  end(operation: Operation): void {
    const { connection, head, status, sequence } = operation
    const { server, pid, serverPort } = connection
    const path = head.bytes.toString('latin1', head.start, head.end).split(' ')[1] ?? ''
    this.records.push({ server, status, sequence, pid, path })
    assert.equal(pid, server ? peers.serverPid : peers.clientPid)
    assert.equal(serverPort, peers.port)
    assert.ok(operation.endNs > operation.startNs && operation.durationNs > 0)
    assert.deepEqual([operation.requestBodyBytes, operation.responseBodyBytes], [0, 5])
    this.#add(server, status, 1)
  }

  count({ connection, status }: Operation, count: number, sumNs: number, buckets: ArrayLike<number>): void {
    const { server, pid, serverPort } = connection
    assert.equal(pid, server ? peers.serverPid : peers.clientPid)
    assert.equal(serverPort, peers.port)
    assert.equal(
      Array.from(buckets).reduce((a, b) => a + b, 0),
      count,
    )
    assert.ok(sumNs >= 0)
    this.counted += count
    this.#add(server, status, count)
  }

  #add(ofServer: boolean, status: number, count: number): void {
    const key = `${ofServer ? 'server' : 'client'} ${status}`
    this.counts.set(key, (this.counts.get(key) ?? 0) + count)
  }
}

/** What else a capture tells. */
const ignored = { begin: () => {}, segment: () => {}, thread: () => {}, skipped: () => {} }

function options(given: Partial<CaptureOptions> = {}): CaptureOptions {
  return {
    ringBytes: 1 << 20,
    perfBytes: 2 ** 20,
    backlogBytes: 0,
    captureBytes: 1024,
    protocols: ['http1'],
    includePorts: [peers.port],
    excludePorts: [],
    maxPerSecond: 0,
    alwaysErrors: true,
    alwaysSlow: true,
    slowNs: 1e9,
    boundsNs: Array.from({ length: 15 }, (_, i) => (i + 1) * 1e6),
    ...given,
  }
}

async function capturing(
  given: Partial<CaptureOptions>,
  body: (capture: SocketCapture, seen: Seen) => Promise<void>,
): Promise<void> {
  const seen = new Seen()
  const capture = new SocketCapture(nativeOrThrow(), sock, options(given), {
    ...ignored,
    begin: () => seen.begun++,
    thread: () => seen.threads++,
    end: operation => seen.end(operation),
    counted: (operation, count, sumNs, buckets) => seen.count(operation, count, sumNs, buckets),
  })
  try {
    await body(capture, seen)
  } finally {
    capture.close()
  }
}

/** Resolves when the kernel side has ended so many exchanges: a sender's hook may run after the answer came. */
function finished(capture: SocketCapture, exchanges: number): Promise<void> {
  const now = () => capture.counters().finished
  const what = () => `${exchanges} exchanges are finished (${now()} are)`
  return until(what, 30_000, () => now() >= exchanges)
}

/** Descriptors of this process that belong to BPF, once the event loop has closed those of watches that ended. */
async function bpfDescriptors(): Promise<string[]> {
  await nextTurn()
  await nextTurn()
  const found: string[] = []
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      found.push(readlinkSync(`/proc/self/fd/${fd}`))
    } catch {
      // The one that the directory was read by.
    }
  }
  return found.filter(target => target.includes('bpf')).sort()
}

/** Whether the kernel still knows a program. What frees it may run a moment later. */
async function isLoaded(id: number): Promise<boolean> {
  for (let tries = 0; tries < 300; tries++) {
    try {
      execFileSync('bpftool', ['prog', 'show', 'id', String(id)], { stdio: 'pipe' })
    } catch {
      return false
    }
    await sleep(100)
  }
  return true
}

const kernel = { skip: withoutBpf }

/** Programs of an object that the kernel runs no more, as it leaves them out at times since Linux 7. */
function leaveOut(capture: object, programs: readonly string[]): void {
  const { object } = capture as { readonly object: BpfObject }
  for (const program of programs) object.detach(program)
}

const sevenWithout = (...leftOut: string[]) => ({ given: { kernel: '7.0' }, leftOut })
for (const [how, { given, leftOut }] of Object.entries({
  '': { given: {}, leftOut: [] },
  ', on Linux 7 as well': sevenWithout(),
  ', also where the first program of a call is left out': sevenWithout('svc_sock_send', 'svc_sock_recv'),
}))
  test(`every exchange comes once from each side, with one sequence number for both${how}`, kernel, () =>
    capturing(given, async (capture, seen) => {
      leaveOut(capture, leftOut)
      await peers.requests(300, '/status/200')
      await peers.requests(100, '/status/404')
      await finished(capture, 800)
      capture.detach()
      assert.deepEqual(
        seen.counts,
        new Map([
          ['server 200', 300],
          ['client 200', 300],
          ['server 404', 100],
          ['client 404', 100],
        ]),
      )
      const sequences = (of: boolean) =>
        seen.records.filter(each => each.server === of).map(each => each.sequence)
      assert.deepEqual(sequences(true).sort(), sequences(false).sort())
      assert.ok(seen.records.every(({ path, status }) => path === `/status/${status}`))
      // Each was told when it began and when it was over.
      assert.deepEqual([seen.begun, capture.received - seen.threads], [800, 1600])
      capture.collect()
      assert.equal(seen.counted, 0)
    }),
  )

test('the first request after a quiet time is delivered at once', kernel, () =>
  capturing({}, async (capture, seen) => {
    const paces: boolean[] = []
    capture.onPace(quiet => paces.push(quiet))
    await until('the host is quiet', 10_000, () => paces.length > 0)
    let turns = 0
    const together = every(1_000, () => turns++) // runs with the drain of a quiet host
    await until('such a drain is over', 2_000, () => turns > 0)
    const before = turns
    await peers.requests(1, '/status/200')
    await until('both sides are there', 10_000, () => seen.records.length === 2)
    assert.equal(turns, before, 'the bell rang before the next drain')
    together.stop()
    assert.deepEqual(paces, [true, false])
  }),
)

test('counters tell the sum over all CPUs, and every exchange is in one of them', kernel, () =>
  capturing({}, async capture => {
    const start = capture.counters()
    assert.equal(start.finished, 0)
    await peers.requests(200, '/status/200')
    await finished(capture, 400)
    capture.detach()
    const { finished: all, records, ring_full, over_budget, red_full } = capture.counters()
    assert.deepEqual([all, records, ring_full, over_budget, red_full], [400, 400, 0, 0, 0])
  }),
)

test('what finds no room in the ring is counted instead, and nothing is missing', kernel, () =>
  capturing({ ringBytes: 4096 }, async (capture, seen) => {
    await peers.requests(1500, '/status/200')
    await peers.requests(500, '/status/500')
    await finished(capture, 4000)
    capture.detach()
    capture.collect()
    assert.deepEqual([...seen.counts].sort(), [
      ['client 200', 1500],
      ['client 500', 500],
      ['server 200', 1500],
      ['server 500', 500],
    ])
    const { finished: all, records, ring_full, red_full } = capture.counters()
    assert.deepEqual([all, red_full], [4000, 0])
    assert.ok(records <= capture.received)
    assert.deepEqual([records, ring_full], [4000 - seen.counted, seen.counted])
    assert.ok(seen.counted > 0 && capture.received > 0)
    assert.equal(capture.ringSize, 4096)
    // All of it was told: a further look finds nothing new.
    capture.collect()
    assert.equal(seen.counted, ring_full)
  }),
)

test('collections in the midst of traffic count everything once', kernel, () =>
  capturing({ ringBytes: 4096 }, async (capture, seen) => {
    let collections = 0
    const traffic = peers.requests(3000, '/status/200')
    let over = false
    const end = traffic.then(() => {
      over = true
    })
    while (!over) {
      capture.collect()
      collections++
      await sleep(1)
    }
    await end
    await finished(capture, 6000)
    capture.detach()
    capture.collect()
    assert.ok(collections > 5)
    assert.deepEqual([...seen.counts].sort(), [
      ['client 200', 3000],
      ['server 200', 3000],
    ])
    assert.ok(seen.counted > 0)
  }),
)

test('a counted series that is idle is let go, and counts anew from nothing', kernel, () =>
  capturing({ ringBytes: 4096 }, async (capture, seen) => {
    const { object } = capture
    const entries = () => {
      const counted = new MapEntries(nativeOrThrow(), object.map('red'))
      for (const _ of counted.counts());
      return counted.count
    }
    const total = () => seen.records.length + seen.counted
    await peers.requests(500, '/status/200')
    await finished(capture, 1000)
    capture.collect()
    assert.equal(total(), 1000)
    assert.ok(entries() > 0)
    for (let i = 0; i < 8; i++) capture.collect()
    assert.equal(entries(), 0)
    await peers.requests(500, '/status/200')
    await finished(capture, 2000)
    capture.collect()
    assert.equal(total(), 2000)
    assert.ok(entries() > 0)
  }),
)

test(
  'what is above the bound on records is counted instead, and failures have a bound of their own',
  kernel,
  () =>
    capturing({ maxPerSecond: 10 }, async (capture, seen) => {
      await peers.requests(300, '/status/200')
      await peers.requests(100, '/status/500')
      await finished(capture, 800)
      capture.detach()
      capture.collect()
      const recorded = (status: number) => seen.records.filter(each => each.status === status).length
      assert.ok(recorded(200) >= 1 && recorded(200) < 600)
      assert.ok(recorded(500) >= 1 && recorded(500) < 200)
      assert.deepEqual([...seen.counts].toSorted(), [
        ['client 200', 300],
        ['client 500', 100],
        ['server 200', 300],
        ['server 500', 100],
      ])
      const { over_budget, ring_full } = capture.counters()
      assert.deepEqual([over_budget, ring_full], [seen.counted, 0])
    }),
)

const asUser = (uid: number) => ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']

/**
 * One asks as fast as it can and another one 50 times a second, or nobody else does. Returns for each how many of its
 * exchanges of the second in which both did were told one by one, and how many were counted.
 */
async function besideFlood(
  flooder: Peers,
  quiet: Peers | undefined,
  given: Partial<CaptureOptions>,
): Promise<{ readonly flood: number[]; readonly quiet: number[]; readonly seconds: number }> {
  const [told, counted] = [new Map<number, number>(), new Map<number, number>()]
  const note = (by: Map<number, number>, pid: number, count: number) =>
    by.set(pid, (by.get(pid) ?? 0) + count)
  const of = (peers: Peers) =>
    [told, counted].map(by => (by.get(peers.serverPid) ?? 0) + (by.get(peers.clientPid) ?? 0))
  const includePorts = [flooder.port, quiet?.port ?? flooder.port]
  const capture = new SocketCapture(nativeOrThrow(), sock, options({ includePorts, ...given }), {
    ...ignored,
    end: ({ connection }) => note(told, connection.pid, 1),
    counted: ({ connection }, count) => note(counted, connection.pid, count),
  })
  const draining = setInterval(() => capture.drain(), 200)
  try {
    let over = false
    let asked = 0
    const flood = async () => {
      for (; !over; asked += 200) await flooder.requests(200, '/status/200')
    }
    const flooding = flood()
    const lost = () => capture.counters().over_budget + capture.counters().ring_full
    await until('some is only counted', 30_000, () => lost() > 0)
    capture.collect()
    const [before, beganMs] = [of(flooder), performance.now()]
    for (let i = 0; i < 50; i++) {
      await quiet?.requests(1, '/status/200')
      await sleep(Math.max(0, beganMs + i * 20 - performance.now()))
    }
    capture.collect()
    const [after, seconds] = [of(flooder), (performance.now() - beganMs) / 1000]
    over = true
    await flooding
    await finished(capture, 2 * (asked + (quiet === undefined ? 0 : 50)))
    capture.detach()
    capture.collect()
    const { finished: all, records } = capture.counters()
    assert.equal(all, records + lost())
    assert.equal(of(flooder)[0]! + of(flooder)[1]!, 2 * asked)
    return {
      flood: after.map((n, i) => n - before[i]!),
      quiet: quiet === undefined ? [] : of(quiet),
      seconds,
    }
  } finally {
    clearInterval(draining)
    capture.close()
  }
}

test('who uses little of the budget has all spans beside a flood, which has the rest', kernel, async t => {
  const check = async (one: readonly string[], other?: readonly string[]) => {
    const [flooder, second] = await Promise.all([startPeers(one), other && startPeers(other)])
    try {
      const { flood, quiet, seconds } = await besideFlood(flooder, second, { maxPerSecond: 1000 })
      t.diagnostic(`flood ${flood}, quiet ${quiet}, in ${seconds} s`)
      assert.deepEqual(quiet, other ? [100, 0] : [])
      const perSecond = (flood[0]! + (quiet[0] ?? 0)) / seconds
      assert.ok(perSecond > 850 && perSecond < 1250, `${perSecond} spans a second`)
    } finally {
      await Promise.all([flooder.close(), second?.close()])
    }
  }
  await check(asUser(65_534), asUser(65_532))
  const groups = [new EmptyGroup(), new EmptyGroup()] as const
  try {
    await check(groups[0].wrapper, groups[1].wrapper)
    await check(groups[0].wrapper)
  } finally {
    for (const group of groups) group.close()
  }
})

test('a flood fills the ring only as far as others still find room', kernel, async t => {
  const [flooder, second] = await Promise.all([startPeers(asUser(65_534)), startPeers(asUser(65_532))])
  try {
    const { flood, quiet } = await besideFlood(flooder, second, { ringBytes: 1 << 18 })
    t.diagnostic(`flood ${flood}, quiet ${quiet}`)
    assert.deepEqual(quiet, [100, 0])
    assert.ok(flood[0]! > 100 && flood[1]! > 100, `told, counted: ${flood}`)
  } finally {
    await Promise.all([flooder.close(), second.close()])
  }
})

test('a long head is kept up to the bound, by the object that has room for it', kernel, async () => {
  const path = `/status/200/${'x'.repeat(6000)}`
  const check = (captureBytes: number, want: number) =>
    capturing({ captureBytes }, async (capture, seen) => {
      await peers.requests(4, path)
      await finished(capture, 8)
      capture.detach()
      assert.deepEqual(
        seen.records.map(record => record.path.length),
        new Array(8).fill(want),
      )
      assert.ok(seen.records.every(record => path.startsWith(record.path)))
    })
  await check(8192, path.length)
  await check(1024, 1024 - 'GET '.length)
  await check(256, 256 - 'GET '.length)
})

test('a port that is not included, or excluded, is not looked at', kernel, async () => {
  const check = (given: Partial<CaptureOptions>) =>
    capturing(given, async (capture, seen) => {
      await peers.freshRequests(20, '/status/200')
      capture.detach()
      capture.collect()
      assert.deepEqual([seen.records.length, seen.counted], [0, 0])
      const { excluded } = capture.counters()
      assert.ok(excluded > 0)
    })
  await check({ includePorts: [1] })
  await check({ includePorts: [peers.port], excludePorts: [peers.port] })
})

test(
  'a kept connection gives exactly the exchanges of the times at which its port was included',
  kernel,
  () =>
    capturing({ includePorts: [1] }, async (capture, seen) => {
      const ways: Partial<CaptureOptions>[] = [
        // Without a list of its own every other port would be seen, and the host is not silent.
        { includePorts: [], excludePorts: Array.from({ length: 65_535 }, (_, i) => i + 1) },
        { includePorts: [1, 2, 65_535] },
        { excludePorts: [80, peers.port] },
      ]
      let want = 0
      for (let i = 0; i < 30; i++) {
        await peers.requests(20 + i, '/status/200')
        await finished(capture, want)
        assert.equal(capture.counters().finished, want)
        capture.apply(options())
        await peers.requests(10 + i, '/status/200')
        want += 2 * (10 + i)
        await finished(capture, want)
        capture.apply(options(ways[i % ways.length]))
      }
      await peers.freshRequests(20, '/status/200')
      capture.detach()
      capture.collect()
      assert.deepEqual([...seen.counts].sort(), [
        ['client 200', want / 2],
        ['server 200', want / 2],
      ])
      const { finished: all, records, abandoned, desync, fault, orphan_response } = capture.counters()
      assert.deepEqual([all, records, abandoned, desync, fault], [want, want, 0, 0, 0])
      // The server's call may end after its client has its answer, and so after the port was included.
      assert.ok(orphan_response <= 30, `${orphan_response} responses without a request`)
    }),
)

/** A server of its own process and one connection to it, over which requests go by halves. */
class Talk {
  readonly server: Program
  readonly socket: Socket
  #received = 0
  #awaited = 0

  private constructor(server: Program, socket: Socket) {
    this.server = server
    this.socket = socket
    socket.on('data', bytes => {
      this.#received += bytes.length
    })
  }

  static readonly head = head('POST / HTTP/1.1', 'host: x', 'content-length: 5', 'expect: 100-continue')
  static readonly interim = head('HTTP/1.1 100 Continue')
  static readonly body = 'hello'
  static readonly answer = `${head('HTTP/1.1 200 OK', 'content-length: 2')}ok`

  static async start(): Promise<Talk> {
    const server = await Program.start('raw-server.ts', { port: 0 })
    const { length } = Talk.head + Talk.body
    const script = [0, 1, 2].flatMap(i => [
      { after: i * length + Talk.head.length, pieces: [Talk.interim], next: 'keep' },
      { after: (i + 1) * length, pieces: [Talk.answer], next: 'keep' },
    ])
    await server.ask(JSON.stringify(script))
    const socket = connect({ port: server.ready.port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    return new Talk(server, socket)
  }

  /** Sends a request's head. Resolves when the server has read it. */
  begin(): Promise<void> {
    return this.#exchange(Talk.head, Talk.interim)
  }

  /** Sends its body. Resolves when the answer is there. */
  end(): Promise<void> {
    return this.#exchange(Talk.body, Talk.answer)
  }

  async #exchange(bytes: string, reply: string): Promise<void> {
    this.socket.write(bytes)
    this.#awaited += reply.length
    await until(`"${reply}" is there`, 30_000, () => this.#received >= this.#awaited)
  }

  async close(): Promise<void> {
    this.socket.destroy()
    await this.server.close()
  }
}

test('an exchange that is under way when its port is excluded leaves no trace', kernel, async () => {
  const check = async (want: number, go: (talk: Talk, include: () => void) => Promise<void>) => {
    const talk = await Talk.start()
    const { port } = talk.server.ready
    const capture = new SocketCapture(nativeOrThrow(), sock, options({ includePorts: [port] }), {
      ...ignored,
      end: ({ connection }) => assert.equal(connection.localPort, port),
      counted: () => {},
    })
    try {
      await talk.begin()
      assert.equal(capture.counters().connections, 1)
      capture.apply(options({ includePorts: [port], excludePorts: [port] }))
      await go(talk, () => capture.apply(options({ includePorts: [port] })))
      await talk.close()
      await finished(capture, want)
      capture.detach()
      const { finished: all, abandoned, desync, records } = capture.counters()
      assert.deepEqual([all, abandoned, desync, records], [want, 0, 0, want])
    } finally {
      capture.close()
      await talk.close()
    }
  }
  await check(0, async () => {})
  await check(0, async ({ socket }) => {
    socket.resetAndDestroy()
  })
  await check(0, talk => talk.end())
  // From the next request on it is seen again.
  await check(1, async (talk, include) => {
    await talk.end()
    await talk.begin()
    include()
    await talk.end()
    await talk.begin()
    await talk.end()
  })
  await check(1, async (talk, include) => {
    await talk.end()
    include()
    await talk.begin()
    await talk.end()
  })
  // Nothing went by meanwhile.
  await check(1, async (talk, include) => {
    include()
    await talk.end()
  })
})

test('what counts as failed and as slow, and the bound, can change while it runs', kernel, () =>
  capturing({ maxPerSecond: 100, alwaysErrors: false, slowNs: 1e15 }, async (capture, seen) => {
    const rules = { maxPerSecond: 100, alwaysErrors: false, slowNs: 1e15 }
    let total = 0
    const ask = async (count: number, status: number): Promise<number> => {
      const before = capture.counters().records
      await peers.requests(count, `/status/${status}`)
      total += 2 * count
      await finished(capture, total)
      return capture.counters().records - before
    }
    // The common budget is used up, and the other one is not touched.
    assert.ok((await ask(300, 500)) < 600)
    capture.apply(options({ ...rules, alwaysErrors: true }))
    assert.equal(await ask(20, 500), 40)
    assert.ok((await ask(300, 200)) < 600)
    capture.apply(options({ ...rules, slowNs: 0 }))
    assert.equal(await ask(20, 200), 40)
    capture.apply(options({ ...rules, maxPerSecond: 0 }))
    assert.equal(await ask(300, 200), 600)
    capture.apply(options({ ...rules, maxPerSecond: 1 }))
    assert.ok((await ask(300, 200)) < 600)
    capture.apply(options({ ...rules, maxPerSecond: 1_000_000 }))
    await sleep(100)
    assert.equal(await ask(300, 200), 600)
    capture.collect()
    assert.equal(
      [...seen.counts.values()].reduce((sum, count) => sum + count, 0),
      total,
    )
  }),
)

test('the agent does not see itself', kernel, () =>
  capturing({}, async (capture, seen) => {
    for (let i = 0; i < 5; i++)
      await new Promise<void>((resolve, reject) => {
        get({ port: peers.port, host: '127.0.0.1', path: '/status/200', agent: false }, response => {
          response.resume().on('end', resolve)
        }).on('error', reject)
      })
    await finished(capture, 5)
    capture.detach()
    assert.deepEqual([...seen.counts], [['server 200', 5]])
  }),
)

test('the documents have every program and every map', kernel, () =>
  capturing({}, async capture => {
    const programs = loadedPrograms('sock')
    for (const name of sock.programs) {
      const state = programs.find(program => program.name === name)
      assert.ok(state?.attached && state.id > 0, name)
      assert.equal(state.type, 'tracing')
    }
    const maps = new Map(countedMaps().map(map => [map.name, map]))
    for (const name of ['red', 'ring', 'counters', 'conns']) assert.ok(maps.has(name), name)
    assert.deepEqual([maps.get('red')!.type, maps.get('red')!.entries], ['percpu_hash', 0])
    assert.equal(maps.get('ring')!.maxEntries, 1 << 20)
    assert.ok(capture.socketsFound > 0)
  }),
)

test('the end leaves nothing in the kernel, and may come twice', kernel, async () => {
  const start = await bpfDescriptors()
  const ids: number[] = []
  await capturing({}, async (capture, seen) => {
    await peers.requests(10, '/status/200')
    await finished(capture, 20)
    ids.push(...loadedPrograms('sock').map(({ id }) => id))
    assert.ok((await bpfDescriptors()).length > start.length)
    capture.close()
    // Detaching hands on what was recorded.
    assert.equal(seen.records.length, 20)
    capture.close()
    capture.detach()
    capture.drain()
    capture.collect()
    assert.deepEqual(await bpfDescriptors(), start)
    assert.deepEqual([loadedPrograms(), loadedMaps()], [[], []])
    assert.equal(capture.counters().finished, 20)
  })
  assert.ok(ids.length >= 4)
  for (const id of ids) assert.equal(await isLoaded(id), false)
})

test('a capture that cannot start says why and leaves nothing in the kernel', kernel, async () => {
  const sink = { ...ignored, end: () => {}, counted: () => {} }
  const check = async (backend: CaptureBackend, given: Partial<CaptureOptions>, message: RegExp) => {
    const start = await bpfDescriptors()
    assert.throws(() => new SocketCapture(nativeOrThrow(), backend, options(given), sink), { message })
    assert.deepEqual(await bpfDescriptors(), start)
  }
  await check(
    { ...sock, objectFor: () => 'absent.bpf.o' },
    {},
    /^BPF object absent\.bpf\.o .* not found; run tools\/setup$/,
  )
  await check(
    { ...sock, programs: [...sock.programs, 'svc_absent'] },
    {},
    /^cannot find program 'svc_absent'/,
  )
  await check({ ...sock, bootstrap: 'svc_absent' }, {}, /^cannot find program 'svc_absent'/)
  await check(sock, { boundsNs: [1, 2, 3] }, /^the BPF program has 15 histogram bounds, not 3$/)
  await check(sock, { captureBytes: 1 << 20 }, /^BPF object .* not found/)
})
