import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Level, Logger } from '../foundation/lib/logger.ts'
import {
  type Batch,
  type ExportCall,
  plainBatch,
  type Receipt,
  SendError,
  type SendFault,
} from '../foundation/model/batch.ts'
import { Account } from './ledger.ts'
import { MemoryQueue } from './memory-queue.ts'
import { type ExportRequest, type Halve, SendLoop, type SendSettings } from './send-loop.ts'

/** A destination whose every answer the test gives by hand. */
class Destination {
  readonly endpoint: string
  readonly open: {
    batch: Batch
    resolve: (receipt?: Partial<Receipt>) => void
    reject: (e: unknown) => void
  }[] = []
  readonly times: number[] = []
  deaf = false

  constructor(endpoint = 'test:1') {
    this.endpoint = endpoint
  }

  callOf(): ExportCall {
    return { protocol: 'grpc', method: 'test' }
  }

  send(batch: Batch, stop: AbortSignal): Promise<Receipt> {
    this.times.push(performance.now())
    return new Promise((resolve, reject) => {
      this.open.push({ batch, reject, resolve: receipt => resolve({ rejected: 0, message: '', ...receipt }) })
      if (!this.deaf) stop.addEventListener('abort', () => reject(fault('cancelled')))
    })
  }

  async close(): Promise<void> {}

  /** The next request that comes, or came and has no answer yet. */
  async next() {
    while (this.open.length === 0) await new Promise(resolve => setTimeout(resolve, 1))
    return this.open.shift()!
  }
}

function fault(type: SendFault, retryable = true, retryAfterMs = 0): SendError {
  return new SendError(`cannot send: ${type}`, { type, retryable, retryAfterMs })
}

function start(t: TestContext, { halve, ...options }: Partial<SendSettings> & { halve?: Halve } = {}) {
  const account = new Account()
  const queue = new MemoryQueue('traces', { limitBytes: 1e6, maxAgeMs: 0 }, (reason, items) =>
    account.drop(reason, items),
  )
  const destination = new Destination()
  const logs: string[] = []
  const requests: ExportRequest[] = []
  const write = (level: Level) => (message: string) => void logs.push(`${level}: ${message}`)
  const log: Logger = {
    configure: () => {},
    enabled: level => level !== 'debug',
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    answer: write('info'),
  }
  const settings: SendSettings = {
    sender: destination,
    concurrency: 3,
    retry: { initialMs: 5, maxMs: 20, multiplier: 2, jitter: 0, maxElapsedMs: 0 },
    onAuthError: 'park',
    ...options,
  }
  const observe = (request: ExportRequest) => requests.push(request)
  const loop = new SendLoop({ signal: 'traces', queue, account, log, observe, halve }, settings)
  const change = (other: Partial<SendSettings>): void => {
    loop.change({ ...settings, ...other })
    loop.pump()
  }
  t.after(() => loop.stop())
  const pushOf = (items: number, bytes: number): void => {
    account.collected += items
    queue.push(plainBatch('traces', items, new Uint8Array(bytes), 0))
    loop.pump()
  }
  const push = (...items: number[]): void => {
    for (const count of items) pushOf(count, 100)
  }
  const settled = async (): Promise<void> => {
    while (queue.items > 0) await new Promise(resolve => setTimeout(resolve, 1))
    await turn()
  }
  return { account, queue, destination, loop, change, push, pushOf, logs, requests, settled }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

test('no more requests run at a time than allowed', async t => {
  const { destination, push, account } = start(t)
  push(1, 2, 3, 4, 5)
  assert.equal(destination.open.length, 3)
  ;(await destination.next()).resolve()
  await turn()
  assert.equal(destination.open.length, 3)
  assert.equal(account.exported, 1)
})

test('after a failure the batch comes first again, one request at a time, until one succeeds', async t => {
  const { destination, push, account, settled, logs, loop } = start(t)
  push(1, 2, 3, 4)
  for (const request of destination.open.splice(0)) request.reject(fault('unavailable'))
  const probe = await destination.next()
  assert.equal(probe.batch.items, 1)
  await turn()
  assert.equal(destination.open.length, 0)
  assert.equal(loop.destination?.connected, false)
  assert.equal(loop.destination?.lastError, 'cannot send: unavailable')
  probe.resolve()
  await turn()
  assert.deepEqual(
    destination.open.map(request => request.batch.items),
    [2, 3, 4],
  )
  for (const request of destination.open.splice(0)) request.resolve()
  await settled()
  assert.equal(account.exported, 10)
  assert.equal(account.droppedTotal, 0)
  assert.deepEqual(logs, ['warn: export failed; queued for retry', 'info: export works again'])
  assert.deepEqual([loop.destination?.connected, loop.destination?.lastError], [true, null])
})

test('requests that fail together count as one failure, so the wait grows once', async t => {
  const retry = { initialMs: 50, maxMs: 60_000, multiplier: 1000, jitter: 0, maxElapsedMs: 0 }
  const { destination, push } = start(t, { retry })
  push(1, 2, 3)
  for (const request of destination.open.splice(0)) request.reject(fault('unavailable'))
  assert.equal((await destination.next()).batch.items, 1)
})

test('the wait that the server asks for holds for the whole signal, also where it asks at a later failure', async t => {
  const { destination, push } = start(t)
  push(1, 2)
  const [first, second] = destination.open.splice(0)
  const asked = performance.now()
  first!.reject(fault('unavailable'))
  await turn()
  second!.reject(fault('unavailable', true, 80))
  push(3)
  await destination.next()
  assert.ok(destination.times[2]! - asked >= 79, `${destination.times[2]! - asked}`)
})

test('a final error drops the batch with its name and goes on at once', async t => {
  const { destination, push, account, settled, logs, requests, loop } = start(t)
  push(7, 2)
  ;(await destination.next()).reject(fault('invalid_argument', false))
  ;(await destination.next()).resolve()
  await settled()
  assert.deepEqual([...account.dropped], [['invalid_argument', 7]])
  assert.equal(account.exported, 2)
  assert.deepEqual(logs, ['error: batch dropped'])
  assert.equal(loop.destination?.connected, true)
  assert.deepEqual(
    requests.map(({ signal, endpoint, errorType, items }) => [signal, endpoint, errorType, items]),
    [
      ['traces', 'test:1', 'invalid_argument', 7],
      ['traces', 'test:1', '', 2],
    ],
  )
})

test('what the receiver rejects is neither exported nor dropped, and never more than was sent', async t => {
  const { destination, push, account, settled, loop, logs } = start(t)
  push(10, 5)
  ;(await destination.next()).resolve({ rejected: 3, message: 'too old' })
  ;(await destination.next()).resolve({ rejected: 99 })
  await settled()
  assert.deepEqual([account.exported, account.rejected, account.droppedTotal], [7, 8, 0])
  assert.equal(loop.destination?.lastWarning, '5 items rejected')
  assert.equal(loop.destination?.lastError, null)
  assert.deepEqual(logs, ['error: the receiver rejected items'])
})

test('refused credentials park the signal: data is kept and one request asks again', async t => {
  const { destination, push, account, settled, loop } = start(t)
  push(1, 2)
  for (const request of destination.open.splice(0)) request.reject(fault('unauthenticated', false))
  await turn()
  assert.equal(loop.destination?.parked, true)
  assert.equal(account.droppedTotal, 0)
  const probe = await destination.next()
  assert.equal(destination.open.length, 0)
  probe.resolve()
  ;(await destination.next()).resolve()
  await settled()
  assert.equal(loop.destination?.parked, false)
  assert.equal(account.exported, 3)
})

test('refused credentials drop the batch where the operator chose so', async t => {
  const { destination, push, account, settled } = start(t, { onAuthError: 'drop' })
  push(4)
  ;(await destination.next()).reject(fault('permission_denied', false))
  await settled()
  assert.deepEqual([...account.dropped], [['permission_denied', 4]])
})

test('a batch that was tried for too long is dropped as such', async t => {
  const retry = { initialMs: 1, maxMs: 5, multiplier: 2, jitter: 0, maxElapsedMs: 30 }
  const { destination, push, account, queue } = start(t, { retry })
  push(4)
  while (queue.items > 0) {
    ;(await destination.next()).reject(fault('unavailable'))
    await turn()
  }
  assert.deepEqual([...account.dropped], [['retry_timeout', 4]])
})

test('a sender that fails by its own fault does not stop the others', async t => {
  const { destination, push, account, settled } = start(t)
  push(1, 2)
  ;(await destination.next()).reject(new TypeError('bug'))
  ;(await destination.next()).resolve()
  await settled()
  assert.deepEqual([...account.dropped], [['internal', 1]])
  assert.equal(account.exported, 2)
})

test('a flush waits for what is queued, not for what comes later, and counts what was acknowledged', async t => {
  const { destination, push, loop } = start(t, { concurrency: 1 })
  push(1, 2)
  const flush = loop.flush(60_000)
  push(4)
  ;(await destination.next()).resolve({ rejected: 1 })
  ;(await destination.next()).resolve()
  assert.deepEqual(await flush, { acknowledged: 2, left: 0 })
  ;(await destination.next()).resolve()
})

test('a flush of nothing is done at once, and one that finds no receiver ends with its time', async t => {
  const { destination, push, loop } = start(t)
  assert.deepEqual(await loop.flush(60_000), { acknowledged: 0, left: 0 })
  push(1)
  assert.deepEqual(await loop.flush(10), { acknowledged: 0, left: 1 })
  ;(await destination.next()).resolve()
})

test('a flush does not sit out our own wait', async t => {
  const retry = { initialMs: 600_000, maxMs: 600_000, multiplier: 2, jitter: 0, maxElapsedMs: 0 }
  const { destination, push, loop } = start(t, { retry })
  push(3)
  ;(await destination.next()).reject(fault('unavailable'))
  await turn()
  const flush = loop.flush(60_000)
  ;(await destination.next()).resolve()
  assert.deepEqual(await flush, { acknowledged: 3, left: 0 })
})

test('stopping puts what is under way back, and nothing is sent after it', async t => {
  const { destination, push, loop, queue, account } = start(t)
  push(1, 2, 4, 8)
  await loop.stop()
  assert.equal(queue.items, 15)
  assert.equal(queue.sending, 0)
  push(16)
  assert.equal(destination.times.length, 3)
  assert.equal(account.droppedTotal, 0)
})

test('stopping does not wait for a sender that ignores it, whose late answer changes nothing', async t => {
  const { destination, push, loop, queue, account } = start(t)
  destination.deaf = true
  push(5)
  await loop.stop()
  queue.clear('shutdown')
  ;(await destination.next()).resolve()
  await turn()
  assert.deepEqual([account.exported, account.droppedTotal, account.queued], [0, 5, 0])
})

test('two flushes at once both have true counts, of what they found and of what is left', async t => {
  const { destination, push, loop } = start(t, { concurrency: 1 })
  push(1, 2)
  const first = loop.flush(60_000)
  push(4, 8)
  const second = loop.flush(60_000)
  ;(await destination.next()).resolve()
  ;(await destination.next()).resolve()
  assert.deepEqual(await first, { acknowledged: 3, left: 0 })
  ;(await destination.next()).resolve({ rejected: 1 })
  await destination.next()
  push(16)
  const third = loop.flush(10)
  await loop.stop()
  assert.deepEqual(await second, { acknowledged: 6, left: 8 })
  assert.deepEqual(await third, { acknowledged: 0, left: 24 })
})

/** Divides as requests are divided: in two of about the same number of items. */
const halve = async (batch: Batch) => {
  const first = batch.items >> 1
  const part = (items: number) => plainBatch('traces', items, new Uint8Array(items * 10), batch.orderKeys)
  return [part(first), part(batch.items - first)] as const
}

test('of a batch that is refused for what is in it only the part to blame is lost', async t => {
  const { destination, push, account, queue } = start(t, { halve })
  push(8)
  // The third of eight is to blame: 8, 4, 2, 1, 1, 2, 4.
  const sent: number[] = []
  for (const verdict of ['bad', 'bad', 'ok', 'bad', 'bad', 'ok', 'ok']) {
    const request = destination.open.shift()!
    sent.push(request.batch.items)
    if (verdict === 'ok') request.resolve()
    else request.reject(fault('invalid_argument', false))
    await turn()
    assert.equal(account.queued, queue.items)
  }
  assert.deepEqual(sent, [8, 4, 2, 2, 1, 1, 4])
  assert.deepEqual([account.exported, ...account.dropped], [7, ['invalid_argument', 1]])
  assert.equal(queue.items, 0)
})

test('a receiver that refuses everything for what is in it is not asked without end', async t => {
  const { destination, push, account, loop } = start(t, { halve })
  push(4096)
  while (destination.open.length > 0) {
    destination.open.shift()!.reject(fault('invalid_argument', false))
    await turn()
  }
  assert.deepEqual([...account.dropped], [['invalid_argument', 4096]])
  assert.ok(loop.counts.requests <= 65, String(loop.counts.requests))
})

test('the parts of a batch that are left wait where the receiver goes away in between', async t => {
  const retry = { initialMs: 1, maxMs: 1, multiplier: 1, jitter: 0, maxElapsedMs: 0 }
  const { destination, push, account, queue, loop } = start(t, { halve, retry })
  push(10)
  destination.open.shift()!.reject(fault('too_large', false))
  await turn()
  destination.open.shift()!.resolve()
  await turn()
  destination.open.shift()!.reject(fault('unavailable', true))
  await turn()
  assert.deepEqual([account.exported, account.queued, queue.items], [5, 5, 5])
  while (destination.open.length === 0) await turn()
  assert.equal(destination.open[0]!.batch.items, 5)
  destination.open.shift()!.resolve()
  await turn()
  assert.deepEqual([account.exported, account.droppedTotal, queue.items], [10, 0, 0])
  assert.ok(loop.limitBytes < Number.POSITIVE_INFINITY)
})

test('one item that is too large for the receiver is dropped, and its limit is remembered', async t => {
  const { destination, pushOf, account, loop } = start(t, { halve })
  pushOf(1, 10_000)
  destination.open
    .shift()!
    .reject(new SendError('too large', { type: 'too_large', retryable: false, limitBytes: 5000 }))
  await turn()
  assert.deepEqual([...account.dropped], [['too_large', 1]])
  assert.equal(loop.limitBytes, 5000)
})

test('a limit that is only guessed does not fall without end, and is tried again after a while', async t => {
  const { destination, pushOf, account, loop } = start(t, { halve, concurrency: 1 })
  // A single item tells that the limit is below it, a batch that half of it may do.
  pushOf(1, 60_000)
  destination.open.shift()!.reject(fault('too_large', false))
  await turn()
  assert.equal(loop.limitBytes, 60_000)
  pushOf(8, 30_000)
  destination.open.shift()!.reject(fault('too_large', false))
  await turn()
  assert.equal(loop.limitBytes, 15_000)
  while (destination.open.length > 0) {
    destination.open.shift()!.reject(fault('too_large', false))
    await turn()
  }
  assert.equal(loop.limitBytes, 4096)
  const later = performance.now() + 11 * 60_000
  t.mock.method(performance, 'now', () => later)
  for (const limitBytes of [8192, 8192]) {
    pushOf(1, 100)
    destination.open.shift()!.resolve()
    await turn()
    assert.equal(loop.limitBytes, limitBytes)
  }
  assert.equal(account.queued, 0)
})

test('a flush waits only shortly between attempts, however long it failed before', async t => {
  const retry = { initialMs: 5, maxMs: 600_000, multiplier: 1000, jitter: 0, maxElapsedMs: 0 }
  const { destination, push, loop } = start(t, { retry })
  push(3)
  ;(await destination.next()).reject(fault('unavailable'))
  ;(await destination.next()).reject(fault('unavailable'))
  await turn()
  const flush = loop.flush(60_000)
  ;(await destination.next()).reject(fault('unavailable'))
  ;(await destination.next()).resolve()
  assert.deepEqual(await flush, { acknowledged: 3, left: 0 })
})

test('a receiver that does not know the signal is left alone, and what waits is kept', async t => {
  const { destination, push, account, loop, queue, logs } = start(t, { halve, concurrency: 1 })
  push(1, 2, 4)
  destination.open.shift()!.reject(fault('unimplemented', false))
  await turn()
  assert.deepEqual([destination.open.length, queue.items], [0, 6])
  assert.deepEqual([...account.dropped], [['unimplemented', 1]])
  assert.ok(loop.unknownMs > 15_000 && loop.unknownMs <= 30_000 && loop.failing)
  assert.equal(logs.length, 1)
})

test('another destination is tried at once, with all that waits, whatever the old one did', async t => {
  const retry = { initialMs: 600_000, maxMs: 600_000, multiplier: 2, jitter: 0, maxElapsedMs: 0 }
  const { destination, push, change, loop, account, logs } = start(t, { retry })
  push(1, 2, 4, 8)
  const [first, second] = destination.open.splice(0)
  first!.reject(fault('unauthenticated', false, 900_000))
  await turn()
  assert.deepEqual([loop.destination?.parked, loop.counts.failed], [true, 1])
  const other = new Destination('test:2')
  change({ sender: other, retry })
  assert.deepEqual(loop.destination, {
    endpoint: 'test:2',
    connected: false,
    lastExportMs: null,
    lastError: null,
    lastWarning: null,
    parked: false,
    unknown: false,
    nextAttemptMs: null,
  })
  assert.deepEqual(
    other.open.map(({ batch }) => batch.items),
    [1, 8],
  )
  // What the old one still answers counts as its own, and what it refuses goes to the new one.
  second!.resolve()
  await turn()
  assert.deepEqual([...account.exportedBy].sort(), [
    ['test:1', 2],
    ['test:2', 0],
  ])
  assert.equal(loop.destination?.connected, false)
  for (const request of other.open.splice(0)) request.resolve()
  await turn()
  assert.deepEqual([account.exported, account.droppedTotal, account.queued], [11, 0, 4])
  assert.match(logs[0]!, /^warn: the receiver rejected our credentials/)
  assert.deepEqual(logs.slice(1), ['info: export works again'])
})

test('what the old destination refuses for good is for the new one to judge', async t => {
  const { destination, push, change, account, settled, loop } = start(t)
  push(1, 2)
  const old = destination.open.splice(0)
  const other = new Destination('test:2')
  change({ sender: other })
  push(4)
  for (const request of old) request.reject(fault('invalid_argument', false))
  const taken: number[] = []
  for (let i = 0; i < 3; i++) {
    const { batch, resolve } = await other.next()
    taken.push(batch.items)
    resolve()
  }
  await settled()
  assert.deepEqual(taken, [4, 1, 2])
  assert.deepEqual([account.exported, account.droppedTotal], [7, 0])
  assert.equal(loop.destination?.lastError, null)
  assert.deepEqual(loop.counts, { requests: 5, failed: 2, retries: 2 })
})

test('without a destination what waits is dropped, once what is under way has ended', async t => {
  const { destination, push, change, account, queue, loop } = start(t, { concurrency: 2 })
  push(1, 2, 4)
  const [first, second] = destination.open.splice(0)
  const flush = loop.flush(60_000)
  change({ sender: undefined })
  assert.equal(loop.destination, undefined)
  first!.resolve()
  await turn()
  assert.deepEqual([account.exported, account.droppedTotal, queue.items], [1, 0, 6])
  second!.reject(fault('unavailable'))
  await turn()
  assert.deepEqual([...account.dropped], [['no_endpoint', 6]])
  assert.deepEqual(await flush, { acknowledged: 1, left: 0 })
  push(8)
  assert.deepEqual([...account.dropped], [['no_endpoint', 14]])
  change({})
  push(16)
  ;(await destination.next()).resolve()
  await turn()
  assert.deepEqual([account.exported, account.queued], [17, 0])
})

test('where a destination comes back before the last request has ended, nothing is dropped', async t => {
  const { destination, push, change, account } = start(t, { concurrency: 1 })
  push(1, 2)
  const [old] = destination.open.splice(0)
  change({ sender: undefined })
  const other = new Destination('test:2')
  change({ sender: other, concurrency: 4 })
  old!.reject(fault('unavailable'))
  ;(await other.next()).resolve()
  ;(await other.next()).resolve()
  await turn()
  assert.deepEqual([account.exported, account.droppedTotal, account.queued], [3, 0, 0])
})

test('concurrency, backoff and what is done about refused credentials change in place', async t => {
  const retry = { initialMs: 600_000, maxMs: 600_000, multiplier: 2, jitter: 0, maxElapsedMs: 0 }
  const { destination, push, change, account, settled, loop } = start(t, { concurrency: 1, retry })
  push(1, 2, 4, 8)
  assert.equal(destination.open.length, 1)
  change({ concurrency: 3, retry })
  assert.equal(destination.open.length, 3)
  for (const request of destination.open.splice(0)) request.reject(fault('unauthenticated', false))
  await turn()
  assert.deepEqual([loop.destination?.parked, destination.open.length], [true, 0])
  // A wait longer than the new longest one is cut short.
  change({ concurrency: 3, onAuthError: 'drop', retry: { ...retry, initialMs: 5, maxMs: 10 } })
  ;(await destination.next()).reject(fault('unauthenticated', false))
  ;(await destination.next()).resolve()
  for (let i = 0; i < 2; i++) (await destination.next()).resolve()
  await settled()
  assert.deepEqual([...account.dropped], [['unauthenticated', 1]])
  assert.equal(account.exported, 14)
})
