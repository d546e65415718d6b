// owns: process
// Whatever a receiver of OTLP over gRPC does, every record arrives or is counted as lost under its reason, and the
// books are exact at every look (P3, P4 and P8 of docs/develop/pipeline.md).
import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { statusName } from '../../src/foundation/lib/grpc-status.ts'
import { resource } from '../../src/foundation/model/resource.ts'
import { Span } from '../../src/foundation/model/span.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import {
  type Answer,
  type Receiver,
  type ReceiverOptions,
  spawnReceiver,
  startReceiver,
} from '../helpers/otlp-receiver.ts'
import { freePort, pause, until } from '../helpers/program.ts'
import { assertSettled, Shipment, type ShipmentOptions } from '../helpers/shipment.ts'

const kinds = ['disk', 'memory'] as const

async function receive(t: TestContext, options: ReceiverOptions = {}): Promise<Receiver> {
  const receiver = await startReceiver({ keep: true, ...options })
  t.after(() => receiver.close())
  return receiver
}

function ship(t: TestContext, endpoint: string, more: Partial<ShipmentOptions> = {}): Shipment {
  const { env, ...options } = more
  const shipment = new Shipment({
    ...options,
    env: { SVC_OTLP_ENDPOINT: endpoint, SVC_QUEUES_LOGS_BATCH_SIZE: '10', ...env },
  })
  t.after(() => shipment.end())
  return shipment
}

/** Answers so many requests by the fault, and takes all others; `refused` are the records of the first. */
function failFirst(receiver: Receiver, times: number, fault: Answer): { refused: number } {
  const told = { refused: 0 }
  receiver.answer = ({ items }) => {
    if (times-- <= 0) return { kind: 'ok' }
    told.refused += items
    return fault
  }
  return told
}

test('a receiver that is down at the start, and goes away later, costs nothing', async t => {
  for (const queue of kinds) {
    const port = await freePort()
    const shipment = ship(t, `127.0.0.1:${port}`, { queue })
    shipment.add(200)
    await shipment.until('it was tried', () => shipment.logs.failedRequests >= 3)
    assert.equal(shipment.books.queued, 200)
    assert.match(shipment.logs.destination!.lastError!, /ECONNREFUSED/)
    const first = await startReceiver({ keep: true, port })
    shipment.add(100)
    await shipment.emptied()
    assertSettled(shipment, [first])
    await first.close()
    shipment.add(200)
    const { failedRequests } = shipment.logs
    await shipment.until('it was tried again', () => shipment.logs.failedRequests >= failedRequests + 3)
    const second = await receive(t, { port })
    await shipment.emptied()
    assertSettled(shipment, [first, second])
  }
})

test('whoever else listens at the port is no receiver, and costs nothing', async t => {
  const others: ((socket: Socket) => void)[] = [
    socket => socket.end(),
    socket => socket.resetAndDestroy(),
    socket => socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'),
    socket => socket.end(Buffer.alloc(100_000, 7)),
    socket => socket.resume(), // reads all and says nothing
  ]
  for (const other of others) {
    const sockets = new Set<Socket>()
    const server = createServer(socket => {
      sockets.add(socket)
      socket.on('error', () => {}) // cut by either side
      other(socket)
    })
    const port = await freePort()
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
    const shipment = ship(t, `127.0.0.1:${port}`, { env: { SVC_OTLP_TIMEOUT: '300ms' } })
    shipment.add(100)
    await shipment.until('it was tried', () => shipment.logs.failedRequests >= 2)
    assert.equal(shipment.books.queued, 100, shipment.logs.destination!.lastError!)
    const closed = new Promise(resolve => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
    const receiver = await receive(t, { port })
    await shipment.emptied()
    assertSettled(shipment, [receiver], { duplicates: 'some' })
  }
})

test('what does not fit the queue is counted, and it is the oldest that goes', async t => {
  for (const queue of kinds) {
    const port = await freePort()
    const limit =
      queue === 'disk'
        ? { SVC_PIPELINE_EXPORT_QUEUE_MAX_SIZE_BYTES: '2Mi' }
        : { SVC_QUEUES_LOGS_MEM_LIMIT: '2Mi' }
    const env = { ...limit, SVC_OTLP_COMPRESSION: 'none', SVC_QUEUES_LOGS_BATCH_SIZE: '50' }
    const shipment = ship(t, `127.0.0.1:${port}`, { queue, env })
    for (let i = 0; i < 50; i++) {
      shipment.add(100, 1000)
      assert.ok(shipment.books.queued <= 2200)
      await pause(1)
    }
    await shipment.until('all are in the queue', () => shipment.logs.batchingMs === 0)
    const { dropped, queued } = shipment.books
    assert.deepEqual(Object.keys(dropped), ['queue_full'])
    assert.ok(queued >= 1000, `${queued} fit into 2 MiB`)
    const receiver = await receive(t, { port })
    await shipment.emptied()
    assertSettled(shipment, [receiver], { dropped })
    const numbers = receiver.lines.map(({ body }) => Number.parseInt(body as string, 10))
    // Batches under way are never taken away.
    assert.ok(numbers.filter(number => number < 5000 - queued).length <= 4 * 50)
    assert.ok(numbers.includes(4999))
  }
})

test('where the configuration bounds the time, what is too old is counted under its reason', async t => {
  for (const queue of kinds) {
    const receiver = await receive(t)
    receiver.answer = () => ({ kind: 'refuse', code: 14 })
    const shipment = ship(t, receiver.endpoint, { queue, env: { SVC_BACKOFF_MAX_ELAPSED: '200ms' } })
    shipment.add(20)
    await shipment.emptied()
    assertSettled(shipment, [receiver], { dropped: { retry_timeout: 20 } })
  }
  const port = await freePort()
  const env = { SVC_QUEUES_LOGS_MAX_AGE: '200ms' }
  const shipment = ship(t, `127.0.0.1:${port}`, { queue: 'memory', env })
  shipment.add(20)
  await shipment.emptied()
  assertSettled(shipment, [], { dropped: { expired: 20 } })
})

test('a slow receiver gets everything once', async t => {
  for (const queue of kinds) {
    const receiver = await receive(t)
    const shipment = ship(t, receiver.endpoint, { queue })
    let first = true
    receiver.answer = async () => {
      if (first) {
        // What comes behind it is divided by hosts, so that these can be under way beside each other.
        first = false
        shipment.add(150)
        await until('all are in the queue', 8000, () => shipment.logs.batchingMs === 0)
      } else await until('several at a time', 8000, () => receiver.mostOpen > 1)
      await pause(50)
      return { kind: 'ok' }
    }
    shipment.add(10)
    await shipment.emptied()
    assertSettled(shipment, [receiver])
    assert.equal(shipment.logs.failedRequests, 0)
  }
})

test('after resets in the middle of requests what was taken before comes again, and nothing else', async t => {
  for (const queue of kinds) {
    const receiver = await receive(t)
    const shipment = ship(t, receiver.endpoint, { queue })
    let resets = 0
    let taken = 0
    receiver.answer = ({ items }) => {
      if (resets >= 12) return { kind: 'ok' }
      if (resets++ % 2 === 0) return { kind: 'cut' }
      // It takes them, and nobody hears of it.
      taken += items
      receiver.cut()
      return { kind: 'ok' }
    }
    await shipment.until('all was tried', () => {
      if (resets < 12) shipment.add(10)
      return resets >= 12
    })
    await shipment.emptied()
    const again = assertSettled(shipment, [receiver], { duplicates: 'some' })
    // A reset also takes the answers of requests beside it.
    assert.ok(again >= taken && again <= 4 * taken, `${again} of ${taken}`)
  }
})

test('past the deadline a request is sent again, also where the receiver was only late', async t => {
  for (const queue of kinds) {
    const receiver = await receive(t)
    const shipment = ship(t, receiver.endpoint, { queue, env: { SVC_OTLP_TIMEOUT: '150ms' } })
    let late = 0
    let times = 4
    receiver.answer = async ({ items }) => {
      if (times-- <= 0) return { kind: 'ok' }
      if (times % 2 === 0) return { kind: 'stall' }
      late += items
      await pause(400)
      return { kind: 'ok' }
    }
    shipment.add(200)
    await shipment.emptied()
    await until('the late ones are through', 60_000, () => receiver.counts.logs >= 200 + late)
    // A host that stops for a moment makes others late, too.
    const again = assertSettled(shipment, [receiver], { duplicates: 'some' })
    assert.ok(late > 0 && again >= late, `${again} of ${late}`)
  }
})

/** OTLP specification, "Failures", and what svc makes of what is not to be sent again. */
const codes: Record<number, 'again' | 'parked' | 'divided' | 'dropped' | 'left' | 'hinted'> = {
  1: 'again',
  2: 'dropped',
  3: 'divided',
  4: 'again',
  5: 'dropped',
  6: 'dropped',
  7: 'parked',
  8: 'hinted',
  9: 'dropped',
  10: 'again',
  11: 'again',
  12: 'left',
  13: 'dropped',
  14: 'again',
  15: 'again',
  16: 'parked',
}

for (const queue of kinds)
  test(`each gRPC code, with and without a hint, is answered as OTLP says (queue in ${queue})`, async t => {
    const check = async (code: number, retryMs: number | undefined) => {
      const receiver = await receive(t)
      const told = failFirst(receiver, 3, {
        kind: 'refuse',
        code,
        message: 'on purpose',
        ...(retryMs !== undefined && { retryMs }),
      })
      const shipment = ship(t, receiver.endpoint, { queue })
      shipment.add(60)
      const what = codes[code] === 'hinted' ? (retryMs ? 'again' : 'dropped') : codes[code]!
      if (what === 'left') {
        // The signal is left alone for minutes; another destination begins anew.
        await shipment.until('it was tried', () => told.refused > 0 && shipment.logs.requestsInFlight === 0)
        const { dropped, queued } = shipment.books
        assert.deepEqual(dropped, { unimplemented: told.refused })
        assert.equal(queued, 60 - told.refused)
        shipment.add(1)
        assert.deepEqual(shipment.books.dropped, { unimplemented: told.refused + 1 })
        receiver.answer = () => ({ kind: 'ok' })
        shipment.change({
          SVC_OTLP_ENDPOINT: receiver.endpoint,
          SVC_QUEUES_LOGS_BATCH_SIZE: '10',
          SVC_OTLP_HEADERS: '{"x-other": "1"}',
        })
        await shipment.emptied()
        assertSettled(shipment, [receiver], { dropped: { unimplemented: told.refused + 1 } })
      } else {
        await shipment.emptied()
        const dropped = what === 'dropped' ? { [statusName(code)]: told.refused } : undefined
        assertSettled(shipment, [receiver], { ...(dropped && { dropped }) })
      }
      assert.ok(told.refused > 0)
      await shipment.end()
    }
    // Some at a time, for each has a receiver and a queue of its own.
    for (let first = 1; first <= 16; first += 4)
      await Promise.all(
        [0, 1, 2, 3].flatMap(more => [
          check(first + more, undefined).catch(named(first + more, 'no hint')),
          check(first + more, 30).catch(named(first + more, 'RetryInfo')),
        ]),
      )
  })

function named(code: number, hint: string): (error: Error) => never {
  return cause => {
    throw new Error(`${statusName(code)}, ${hint}: ${cause.message}`, { cause })
  }
}

test('a wait that the receiver asks for is kept by the whole signal', async t => {
  for (const code of [8, 14]) {
    const receiver = await receive(t)
    const times: number[] = []
    receiver.answer = () => {
      times.push(performance.now())
      return times.length < 4 ? { kind: 'refuse', code, retryMs: 200 } : { kind: 'ok' }
    }
    const shipment = ship(t, receiver.endpoint, { env: { SVC_OTLP_CONCURRENCY: '1' } })
    await shipment.until('it answers', () => {
      shipment.add(5)
      return times.length >= 5
    })
    await shipment.emptied()
    assertSettled(shipment, [receiver])
    for (const at of [1, 2, 3])
      assert.ok(times[at]! - times[at - 1]! >= 190, `${times[at]! - times[at - 1]!} ms`)
  }
})

test('what a receiver rejects of a request that it takes is counted, and never more than was sent', async t => {
  const check = async (partial: { rejected?: number; message?: string }, want: (items: number) => number) => {
    for (const queue of kinds) {
      const receiver = await receive(t)
      let rejected = 0
      receiver.answer = ({ items }) => {
        rejected += want(items)
        // What the referee counts as taken is what it may have kept.
        return { kind: 'ok', ...partial }
      }
      const shipment = ship(t, receiver.endpoint, { queue })
      shipment.add(50)
      await shipment.emptied()
      const { requests } = receiver.counts
      assert.deepEqual(shipment.books, { exported: 50 - rejected, rejected, dropped: {}, queued: 0 })
      assert.equal(receiver.counts.logs, 50 - requests * (partial.rejected ?? 0))
      assert.equal(receiver.lines.length, 50, 'nothing was sent again')
      assert.equal(shipment.logs.failedRequests, 0)
      const { lastError, lastWarning } = shipment.logs.destination!
      assert.equal(lastError, null)
      assert.match(lastWarning ?? '', new RegExp(partial.message ?? ''))
    }
  }
  await check({ rejected: 1, message: 'one is bad' }, () => 1)
  await check({ rejected: 1000, message: 'more than there were' }, items => items)
  await check({ rejected: -5, message: 'less than none' }, () => 0)
  await check({ message: 'only a warning' }, () => 0)
})

test('a receiver that goes away in an orderly manner finishes what it has, and nothing is sent twice', async t => {
  for (const queue of kinds) {
    const receiver = await receive(t)
    receiver.answer = () => pause(50).then(() => ({ kind: 'ok' }))
    const shipment = ship(t, receiver.endpoint, { queue })
    for (let i = 0; i < 6; i++) {
      shipment.add(20)
      // Only a request opens another connection.
      await shipment.until('requests are under way, and the connection is another', () => {
        if (shipment.logs.requestsInFlight === 0) shipment.add(10)
        return receiver.counts.connections > i && shipment.logs.requestsInFlight > 0
      })
      receiver.goAway()
    }
    await shipment.emptied()
    assertSettled(shipment, [receiver])
  }
})

test('the limit of the receiver is learned from its refusals, and all is delivered in smaller requests', async t => {
  for (const queue of kinds)
    for (const compression of ['none', 'gzip']) {
      const receiver = await receive(t, { maxMessageBytes: 20_000 })
      const env = { SVC_OTLP_COMPRESSION: compression, SVC_QUEUES_LOGS_BATCH_SIZE: '1000' }
      const shipment = ship(t, receiver.endpoint, { queue, env })
      shipment.add(500, 400)
      await shipment.emptied()
      assertSettled(shipment, [receiver])
      const { failedRequests } = shipment.logs
      assert.ok(failedRequests > 0)
      shipment.add(500, 400)
      await shipment.emptied()
      assertSettled(shipment, [receiver])
      assert.equal(shipment.logs.failedRequests, failedRequests, 'it has learned')
    }
})

test('what is above a limit that was only guessed is still tried', async t => {
  const receiver = await receive(t)
  receiver.answer = (_, lines) =>
    JSON.stringify(lines).length > 40_000
      ? { kind: 'refuse', code: 8, message: 'message larger than max' }
      : { kind: 'ok' }
  const shipment = ship(t, receiver.endpoint, { env: { SVC_QUEUES_LOGS_BATCH_SIZE: '1000' } })
  shipment.add(100, 400)
  await shipment.emptied()
  assertSettled(shipment, [receiver])
  // Half of the request that was refused is the guess.
  shipment.add(1, 30_000)
  shipment.add(1, 60_000)
  shipment.add(1)
  await shipment.emptied()
  assertSettled(shipment, [receiver], { dropped: { too_large: 1 } })
})

test('of a request with one bad record only that one is lost, and what it was is kept', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-poison-'))
  t.after(() => rmSync(directory, { recursive: true }))
  for (const queue of kinds) {
    const receiver = await receive(t)
    const bad = new Set(['77', '300'])
    receiver.answer = (_, lines) =>
      lines.some(({ body }) => bad.has(body as string))
        ? { kind: 'refuse', code: 3, message: 'a bad record' }
        : { kind: 'ok' }
    const env = { SVC_QUEUES_LOGS_BATCH_SIZE: '256' }
    const shipment = ship(t, receiver.endpoint, { queue, env, ...(queue === 'disk' && { directory }) })
    shipment.add(400)
    await shipment.emptied()
    assertSettled(shipment, [receiver], { dropped: { invalid_argument: 2 } })
    assert.ok(!receiver.lines.some(({ body }) => bad.has(body as string)))
    if (queue === 'memory') continue
    const letters = join(shipment.directory, 'v1', 'default', 'logs', 'dlq')
    const [file] = readdirSync(letters)
    assert.match(readFileSync(join(letters, file!), 'latin1'), /INVALID_ARGUMENT: a bad record/)
    await shipment.end()
    const next = ship(t, receiver.endpoint, { directory })
    assert.equal(next.logs.recovered, 0, 'the next one has nothing to do with it')
    await next.end()
  }
})

test('a signal that the receiver does not know leaves the others alone', async t => {
  const receiver = await receive(t)
  receiver.answer = ({ signal }) => (signal === 'logs' ? { kind: 'refuse', code: 12 } : { kind: 'ok' })
  const shipment = ship(t, receiver.endpoint)
  const { pipeline } = shipment
  const spans = pipeline.intake('traces')
  const host = resource({ 'host.name': 'test' })
  for (let i = 0; i < 20; i++) {
    shipment.add(20)
    for (let j = 0; j < 20; j++) spans.add(host, { name: 'test', version: '1' }, new Span())
    await pause(5)
  }
  await shipment.until('all spans are delivered', () => pipeline.state('traces').exported === 400)
  assert.equal(receiver.counts.traces, 400)
  assert.equal(pipeline.state('traces').failedRequests, 0)
  const { exported, dropped, queued } = shipment.books
  assert.deepEqual([exported, Object.keys(dropped)], [0, ['unimplemented']])
  assert.equal(dropped.unimplemented! + queued, 400)
  assert.ok(shipment.logs.requests <= 4, 'it is not asked again for each batch')
})

test('data waits for credentials that the receiver takes, and other headers bring them', async t => {
  for (const [code, queue] of [
    [16, 'disk'],
    [16, 'memory'],
    [7, 'disk'],
  ] as const) {
    const receiver = await receive(t)
    receiver.answer = ({ headers }) =>
      headers.authorization === 'Bearer new' ? { kind: 'ok' } : { kind: 'refuse', code }
    const env = { SVC_OTLP_HEADERS: '{"authorization": "Bearer old"}', SVC_BACKOFF_MAX: '200ms' }
    const shipment = ship(t, receiver.endpoint, { queue, env })
    shipment.add(100)
    const since = performance.now()
    await shipment.until('it is parked', () => shipment.logs.destination?.parked === true)
    shipment.add(100)
    await pause(500)
    assert.equal(shipment.books.queued, 200)
    // Four may be under way when the first refusal comes; then one per backoff.max, which chance does not shorten.
    const most = 4 + Math.ceil((performance.now() - since) / 200)
    assert.ok(receiver.counts.requests <= most, `${receiver.counts.requests} of ${most}`)
    shipment.change({
      SVC_OTLP_ENDPOINT: receiver.endpoint,
      SVC_OTLP_HEADERS: '{"authorization": "Bearer new"}',
    })
    await shipment.emptied()
    assertSettled(shipment, [receiver])
    assert.equal(shipment.logs.destination?.parked, false)
  }
})

test('certificates of both sides change under load', async t => {
  const certificates = makeCertificates()
  t.after(() => certificates.remove())
  const { file, text } = certificates
  const [ca, cert, key] = ['my-ca.pem', 'mine.pem', 'mine.key'].map(file) as [string, string, string]
  const show = (name: string) => {
    copyFileSync(file(`${name}.pem`), cert)
    copyFileSync(file(`${name}.key`), key)
  }
  copyFileSync(file('ca.pem'), ca)
  show('client')
  const first = await startReceiver({
    port: await freePort(),
    keep: true,
    tls: { cert: text('server.pem'), key: text('server.key'), clientCa: text('ca.pem') },
  })
  const env = {
    SVC_OTLP_ENDPOINT: `https://${first.endpoint}`,
    SVC_OTLP_TLS_CA_FILE: ca,
    SVC_OTLP_TLS_CERT_FILE: cert,
    SVC_OTLP_TLS_KEY_FILE: key,
  }
  const shipment = ship(t, `https://${first.endpoint}`, { env })
  const renew = () =>
    shipment.change(env, new Set(['ca_file', 'cert_file', 'key_file'].map(name => `otlp.logs.tls.${name}`)))
  const load = setInterval(() => shipment.add(10), 5)
  t.after(() => clearInterval(load))
  for (let round = 0; round < 6; round++) {
    const { exported } = shipment.books
    await shipment.until('there is traffic', books => books.exported > exported + 50)
    show(round % 2 === 0 ? 'server' : 'client')
    renew()
  }
  assert.equal(shipment.logs.failedRequests, 0, 'the old connection ends what it has')
  await shipment.until('there is traffic', () => first.counts.connections >= 6)
  // The receiver comes back with a certificate of somebody whom we do not trust yet.
  await first.close()
  const second = await receive(t, {
    port: first.port,
    tls: { cert: text('other.pem'), key: text('other.key'), clientCa: text('ca.pem') },
  })
  await shipment.until('it is refused', () => /certificate/.test(shipment.logs.destination?.lastError ?? ''))
  copyFileSync(file('stranger.pem'), ca)
  renew()
  const { exported } = shipment.books
  await shipment.until('there is traffic', books => books.exported > exported + 50)
  clearInterval(load)
  await shipment.emptied()
  assert.deepEqual(shipment.books.dropped, {})
  // Answers that the first one owed when it went.
  assertSettled(shipment, [first, second], { duplicates: 'some' })
})

test('a backlog goes to another endpoint, in another form, when the configuration says so', async t => {
  for (const queue of kinds) {
    const [first, second] = [await receive(t), await receive(t)]
    first.answer = () => ({ kind: 'refuse', code: 14 })
    const shipment = ship(t, first.endpoint, { queue })
    shipment.add(1000, 200)
    await shipment.until('it was tried', () => shipment.logs.failedRequests >= 2)
    shipment.change({ SVC_OTLP_ENDPOINT: second.endpoint, SVC_OTLP_COMPRESSION: 'none' })
    shipment.add(500)
    await shipment.emptied()
    assertSettled(shipment, [first, second])
    assert.deepEqual([first.counts.logs, second.counts.logs], [0, 1500])
  }
})

test('a receiver that is stopped, and goes on, gets everything', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-stopped-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const dump = join(directory, 'dump')
  const receiver = await spawnReceiver({ dump })
  t.after(() => receiver.close())
  const shipment = ship(t, receiver.endpoint, { env: { SVC_OTLP_TIMEOUT: '500ms' } })
  shipment.add(100)
  await shipment.emptied()
  process.kill(receiver.pid, 'SIGSTOP')
  try {
    const end = performance.now() + 3000
    while (performance.now() < end) {
      shipment.add(10)
      await pause(30)
      assert.ok(shipment.books.queued <= shipment.made - 100)
    }
    assert.equal(shipment.books.exported, 100)
    // All of that time may have passed at once.
    await shipment.until('it is told', () => shipment.logs.destination?.lastError != null)
    assert.match(
      shipment.logs.destination!.lastError!,
      /no (answer|connection) within 500 ms|connection was lost/,
    )
  } finally {
    process.kill(receiver.pid, 'SIGCONT')
  }
  await shipment.emptied()
  // What it had read before it stopped it may still take, long after we gave that up.
  let logs = 0
  let texts: string[] = []
  await until('both of its books say the same', 60_000, async () => {
    logs = (await receiver.counts()).logs
    texts = readFileSync(dump, 'utf8').split('\n').filter(Boolean)
    return texts.length === logs
  })
  const lines = texts.map(text => JSON.parse(text))
  const again = assertSettled(shipment, [{ lines, counts: { logs } }], { duplicates: 'some' })
  t.diagnostic(`${shipment.made} records, ${again} of them twice`)
})
