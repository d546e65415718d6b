// What is said to be secured is: against a record of every item, whatever happens in whatever order.

import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { openStore, queueDirectory, until } from '../../test/helpers/disk-store.ts'
import { randomOf, ShadowFiles } from '../../test/helpers/shadow-files.ts'
import { soak } from '../../test/helpers/soak.ts'
import { createLogger } from '../foundation/lib/logger.ts'
import {
  type Batch,
  type ExportCall,
  type Receipt,
  SendError,
  type Sender,
  type SendFault,
} from '../foundation/model/batch.ts'
import { resource } from '../foundation/model/resource.ts'
import type { BatchQueue, Dropped } from './batch-queue.ts'
import type { Builder } from './batcher.ts'
import { signalDirectory } from './disk/disk-layout.ts'
import type { Files } from './disk/log.ts'
import { openSegmentLog } from './disk/segment-log.ts'
import { usualItemBytes } from './item-size.ts'
import { Account } from './ledger.ts'
import { MemoryQueue } from './memory-queue.ts'
import { SignalQueue, type SignalQueueSettings } from './signal-queue.ts'

const host = resource({ 'host.name': 'test' })
const scope = { name: 'svc', version: '1' }
const log = createLogger({ level: 'error', format: 'text', write: () => {} })
const retry = { initialMs: 1, maxMs: 2, multiplier: 1, jitter: 0, maxElapsedMs: 0 }

const idsOf = ({ body }: Pick<Batch, 'body'>): number[] => Buffer.from(body).toString().split(' ').map(Number)

function batchOf(ids: readonly number[]): Batch {
  const body = Buffer.from(ids.join(' '))
  const orderKeys = (ids[0] ?? 0) % 5 === 0 ? 0xffffffff : 1 << ((ids[0] ?? 0) % 32)
  return { signal: 'logs', items: ids.length, body, encoding: 'identity', plainBytes: body.length, orderKeys }
}

/** Requests that hold numbers as text. The parts of one do not keep their order, as with resources. */
class Numbers implements Builder<number> {
  readonly keptBytes = 0
  #ids: number[] = []

  get items(): number {
    return this.#ids.length
  }

  add(_resource: unknown, _scope: unknown, id: number): number {
    this.#ids.push(id)
    return this.#ids.length * 10
  }

  get last(): undefined {
    return undefined
  }

  encodeApart(): never {
    return assert.fail()
  }

  template(): undefined {
    return undefined
  }

  addEncoded(): number {
    return assert.fail()
  }

  aloneBytes(): number {
    return assert.fail()
  }

  undo(): void {
    this.#ids.pop()
  }

  rest(): void {}

  take(parts = 1): Batch[] {
    const ids = this.#ids
    this.#ids = []
    const lists = Array.from({ length: parts }, (_, part) => ids.filter((_, at) => at % parts === part))
    return lists.filter(list => list.length > 0).map(batchOf)
  }
}

interface Request {
  readonly ids: readonly number[]
  readonly answer: (receipt: Receipt) => void
  readonly fail: (error: SendError) => void
}

/** A receiver whose answers the test gives. */
class Receiver implements Sender {
  readonly endpoint = 'test:1'
  readonly open: Request[] = []
  readonly acknowledged = new Set<number>()
  /** Everything that is sent. */
  seen: (ids: readonly number[]) => void = () => {}
  willing = false

  callOf(): ExportCall {
    return { protocol: 'grpc', method: 'test' }
  }

  send(batch: Batch, stop: AbortSignal): Promise<Receipt> {
    const ids = idsOf(batch)
    this.seen(ids)
    return new Promise((resolve, reject) => {
      const request: Request = {
        ids,
        answer: receipt => {
          for (const id of ids) this.acknowledged.add(id)
          resolve(receipt)
        },
        fail: reject,
      }
      if (this.willing) request.answer({ rejected: 0, message: '' })
      else this.open.push(request)
      stop.addEventListener('abort', () =>
        reject(new SendError('stopped', { type: 'cancelled', retryable: true })),
      )
    })
  }

  takeRequest(which: number): Request | undefined {
    return this.open.splice(which % Math.max(1, this.open.length), 1)[0]
  }

  serve(): void {
    this.willing = true
    for (const { answer } of this.open.splice(0)) answer({ rejected: 0, message: '' })
  }

  async close(): Promise<void> {}
}

interface Wait {
  /** Items up to this one are meant. */
  readonly items: number
  state: 'waiting' | 'secured' | 'refused'
}

type OpenQueue = (dropped: Dropped, ready: () => void) => BatchQueue

/** A queue under test, with every item and every promise that it made. */
class Run {
  readonly account = new Account()
  readonly receiver = new Receiver()
  readonly waits: Wait[] = []
  readonly packs: (() => void)[] = []
  readonly queue: SignalQueue<number>
  added = 0
  packing = false
  secured: (items: number) => void = () => {}
  readonly #base: SignalQueueSettings

  constructor(queue: OpenQueue, settings: Partial<SignalQueueSettings> = {}) {
    this.#base = {
      sender: this.receiver,
      batchItems: 4,
      batchBytes: 1000,
      requestBytes: 1000,
      batchTimeoutMs: 3,
      queueBytes: 4000,
      maxAgeMs: 0,
      concurrency: 3,
      compress: batch => this.#pack(batch),
      ...settings,
    }
    this.queue = new SignalQueue<number>(
      {
        signal: 'logs',
        account: this.account,
        builder: new Numbers(),
        count: () => 1,
        log,
        halve: async batch => {
          const ids = idsOf(batch)
          const half = ids.length >> 1
          return half === 0 ? undefined : [batchOf(ids.slice(0, half)), batchOf(ids.slice(half))]
        },
        queue,
        limit: (own, { queueBytes: limitBytes, maxAgeMs }) => {
          if (own instanceof MemoryQueue) own.limit({ limitBytes, maxAgeMs })
        },
      },
      this.#base,
      this.#send(this.receiver),
      undefined,
    )
  }

  add(count: number): void {
    for (let i = 0; i < count; i++) this.queue.intake.add(host, scope, ++this.added)
  }

  ask(): Wait {
    const wait: Wait = { items: this.added, state: 'waiting' }
    this.waits.push(wait)
    this.queue.secured().then(
      () => {
        wait.state = 'secured'
        this.secured(wait.items)
      },
      () => {
        wait.state = 'refused'
      },
    )
    return wait
  }

  change(settings: Partial<SignalQueueSettings>): void {
    const all = { ...this.#base, ...settings }
    this.queue.change(all, this.#send(all.sender), undefined)
  }

  get queued(): number {
    return this.queue.state.queued
  }

  #send(sender: Sender | undefined) {
    return { sender, concurrency: 3, retry, onAuthError: 'park' as const }
  }

  async #pack(batch: Batch): Promise<Batch> {
    if (this.packing) await new Promise<void>(resolve => this.packs.push(resolve))
    return batch
  }
}

const action = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ do: fc.constant('add' as const), n: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('ask' as const), n: fc.constant(0) }) },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constantFrom('ack' as const, 'retry' as const, 'refuse' as const, 'pass' as const),
      n: fc.nat({ max: 7 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'packing' as const,
        'pack' as const,
        'bound' as const,
        'age' as const,
        'nowhere' as const,
      ),
      n: fc.nat({ max: 3 }),
    }),
  },
)

function apply(run: Run, { do: what, n }: { do: string; n: number }): void {
  const { receiver } = run
  const error = (type: SendFault, retryable: boolean) => new SendError(type, { type, retryable })
  if (what === 'add') run.add(n)
  else if (what === 'ask') run.ask()
  else if (what === 'ack') receiver.takeRequest(n)?.answer({ rejected: n % 2, message: '' })
  else if (what === 'retry') receiver.takeRequest(n)?.fail(error('unavailable', true))
  else if (what === 'refuse') receiver.takeRequest(n)?.fail(error('http_400', false))
  else if (what === 'packing') run.packing = n > 0
  else if (what === 'pack') run.packs.shift()?.()
  else if (what === 'bound') run.change({ queueBytes: 700 + n * 800 })
  else if (what === 'age') run.change({ maxAgeMs: n })
  else if (what === 'nowhere') run.change(n === 0 ? { sender: undefined } : {})
}

const turn = (ms = 0) => new Promise(resolve => setTimeout(resolve, ms))

/** What of the run is left goes to a receiver that takes all, and everybody who waits hears of it. */
async function finish(run: Run): Promise<void> {
  run.packing = false
  run.change({})
  run.receiver.serve()
  await until(() => {
    for (const pack of run.packs.splice(0)) pack()
    return run.queued === 0
  }, 'all is sent')
  await turn()
  for (const { state } of run.waits) assert.equal(state, 'secured')
}

test('in memory what is secured is never sent again, and once nothing is left nobody waits', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 5, maxLength: 60 }),
      fc.boolean(),
      async (actions, end) => {
        const run = new Run(dropped => new MemoryQueue('traces', { limitBytes: 4000, maxAgeMs: 0 }, dropped))
        let secured = 0
        run.secured = items => {
          secured = Math.max(secured, items)
        }
        const again: number[] = []
        run.receiver.seen = ids => again.push(...ids.filter(id => id <= secured))
        for (const one of actions) {
          apply(run, one)
          if (one.n % 3 === 0) await turn(one.do === 'pass' ? 4 : 0)
          const { acknowledged } = run.receiver
          // Nobody waits for what has arrived, where nothing else can have become of it.
          await turn()
          let arrived = 0
          while (acknowledged.has(arrived + 1)) arrived++
          for (const { items, state } of run.waits)
            assert.ok(items > arrived || state === 'secured', `${items}`)
        }
        if (end) {
          const before = run.queued
          await run.queue.drain(0)
          await turn()
          for (const { items, state } of run.waits) {
            assert.notEqual(state, 'waiting')
            if (before === 0) assert.equal(state, 'secured', `${items}`)
          }
        } else await finish(run)
        assert.deepEqual(again, [])
        await run.queue.drain(0)
      },
    ),
    { numRuns: soak ? 500 : 40 },
  )
})

/** Numbers in a log of records that lies in files. */
function onDisk(directory: string, files: ShadowFiles): Set<number> {
  const ids = new Set<number>()
  const found = openSegmentLog({ directory, files, fsyncMs: () => 1e6, kind: 2, fault: () => {} })
  for (let record = found.readFrom(1); record; record = found.readFrom(record.seq + 1))
    for (const id of idsOf(record)) ids.add(id)
  return ids
}

/** The store passes operations on one by one. */
function operationsOf(files: ShadowFiles): Files {
  const bound: Record<string, unknown> = {}
  for (const name of Object.getOwnPropertyNames(ShadowFiles.prototype)) {
    const operation = files[name as keyof ShadowFiles]
    if (typeof operation === 'function') bound[name] = (operation as () => void).bind(files)
  }
  return bound as unknown as Files
}

/** One life of a queue on such a disk. Returns how many promises it made. */
async function liveOnDisk(root: string, seed: number): Promise<number> {
  const random = randomOf(seed)
  const files = new ShadowFiles()
  const fsyncMs = [0, 1, 20][random(3)]!
  const { store } = openStore(root, { files: operationsOf(files), fsyncMs })
  const run = new Run((dropped, ready) => store.queue({ signal: 'logs', memoryBytes: 1e6, dropped, ready }))
  const directory = signalDirectory(root, 'logs')
  const faults: string[] = []
  let promises = 0
  let most = 0
  run.secured = items => {
    if (items <= most) return
    most = items
    promises++
    const { acknowledged } = run.receiver
    for (let i = 0; i < 3; i++) {
      const found = onDisk(directory, files.afterPowerLoss(random))
      for (let id = 1; id <= items; id++)
        if (!found.has(id) && !acknowledged.has(id)) faults.push(`${id} of ${items}`)
    }
  }
  const unavailable = () => new SendError('', { type: 'unavailable', retryable: true })
  for (let step = 0; step < 60; step++) {
    const what = random(12)
    if (what < 5) run.add(1 + random(8))
    else if (what < 7) run.ask()
    else if (what < 8) run.receiver.takeRequest(random(4))?.answer({ rejected: 0, message: '' })
    else if (what < 9) files.failures.set(['sync', 'write'][random(2)]!, ['', 'EIO'].slice(random(2)))
    else if (what < 10) run.receiver.takeRequest(random(4))?.fail(unavailable())
    else await turn(random(4))
  }
  files.failures.clear()
  const last = run.ask()
  // Without a receiver: the disk is enough.
  await until(() => last.state === 'secured', `seed ${seed}: the disk has it`)
  await run.queue.drain(0)
  for (const { state } of run.waits) assert.equal(state, 'secured', `seed ${seed}`)
  assert.deepEqual([faults, run.account.droppedTotal], [[], 0], `seed ${seed}`)
  await store.close()
  return promises
}

test('on disk what is secured outlives a loss of power, also where writing and syncing fail', async t => {
  let promises = 0
  // Beside each other, for most of the time they wait for the disk to be tried again.
  for (let seed = 1; seed <= (soak ? 400 : 30); ) {
    const lives = Array.from({ length: 10 }, () => liveOnDisk(queueDirectory(t), seed++))
    for (const made of await Promise.all(lives)) promises += made
  }
  t.diagnostic(`${promises} promises, held in ${promises * 3} losses of power`)
})

async function memoryRun(t: TestContext, settings: Partial<SignalQueueSettings> = {}): Promise<Run> {
  const run = new Run(
    dropped => new MemoryQueue('traces', { limitBytes: settings.queueBytes ?? 4000, maxAgeMs: 0 }, dropped),
    settings,
  )
  t.after(() => run.queue.drain(0))
  return run
}

test('what nobody takes is refused at the end, what was refused before holds up nothing', async t => {
  const run = await memoryRun(t)
  run.change({ sender: undefined })
  run.add(10)
  await run.queue.secured()
  run.change({})
  run.add(3)
  const wait = run.ask()
  await turn(20)
  assert.equal(wait.state, 'waiting')
  await run.queue.drain(0)
  await turn()
  assert.equal(wait.state, 'refused')
  await assert.rejects(run.queue.secured(), /cannot secure logs: the pipeline stopped/)
})

test('after an end that kept all it is secured, and what comes then is not', async t => {
  const { store } = openStore(queueDirectory(t), { fsyncMs: 0 })
  const run = new Run((dropped, ready) => store.queue({ signal: 'logs', memoryBytes: 1e6, dropped, ready }))
  run.add(10)
  const wait = run.ask()
  assert.equal((await run.queue.drain(0)).kept, 10)
  await turn()
  assert.equal(wait.state, 'secured')
  await run.queue.secured()
  run.add(1)
  await assert.rejects(run.queue.secured(), /the pipeline stopped/)
  await store.close()
})

test('without a receiver records on a real disk are secured, and the next process finds them', async t => {
  const directory = queueDirectory(t)
  const { store } = openStore(directory, { fsyncMs: 20 })
  const run = new Run((dropped, ready) => store.queue({ signal: 'logs', memoryBytes: 1e6, dropped, ready }))
  for (let round = 1; round <= 5; round++) {
    run.add(7)
    await run.queue.secured()
    const copy = queueDirectory(t)
    cpSync(directory, copy, { recursive: true })
    const next = openStore(copy).store
    const queue = next.queue({ signal: 'logs', memoryBytes: 1e6, dropped: () => {}, ready: () => {} })
    assert.equal(queue.recoveredItems, round * 7)
    await next.close()
  }
  await run.queue.drain(0)
  await store.close()
})

test('what another signal drives from the disk is waited for no longer', async t => {
  const { store } = openStore(queueDirectory(t), { maxBytes: 400_000, fsyncMs: 1e6 })
  const run = new Run((dropped, ready) => store.queue({ signal: 'logs', memoryBytes: 1e6, dropped, ready }))
  const traces = store.queue({ signal: 'traces', memoryBytes: 1, dropped: () => {}, ready: () => {} })
  run.add(8)
  await until(() => run.queue.state.queuedBatches === 2, 'both are in the queue')
  run.change({ sender: undefined })
  const gone = new SendError('', { type: 'unavailable', retryable: true })
  for (let request = run.receiver.takeRequest(0); request; request = run.receiver.takeRequest(0))
    request.fail(gone)
  const wait = run.ask()
  await until(() => run.queue.state.requestsInFlight === 0, 'nothing is under way')
  assert.equal(wait.state, 'waiting')
  store.limit({ maxBytes: 1, fsyncMs: 1e6 })
  await until(() => wait.state === 'secured', 'it is')
  assert.deepEqual([...run.account.dropped], [['queue_full', 8]])
  assert.equal(traces.fill, 0)
  await run.queue.drain(0)
  await store.close()
})

test('how full a signal is counts all that waits, in memory and on disk', async t => {
  const run = await memoryRun(t, { queueBytes: 10_000, batchTimeoutMs: 60_000 })
  assert.equal(run.queue.fill, 0)
  run.add(2)
  assert.equal(run.queue.fill, 20 / 10_000)
  let before = 0
  for (let i = 0; i < 10; i++) {
    run.add(4)
    await turn()
    assert.ok(run.queue.fill > before)
    before = run.queue.fill
  }
  run.add(1000)
  assert.ok(run.queue.fill > 0.9 && run.queue.fill <= 1, `${run.queue.fill}`)
  run.receiver.serve()
  await run.queue.flush(10_000)
  assert.equal(run.queue.fill, 0)
})

test('on disk a signal is full when it is its own batches that would give way', async t => {
  const { store } = openStore(queueDirectory(t), { maxBytes: 4_000_000 })
  const options = { memoryBytes: 1e6, dropped: () => {}, ready: () => {} }
  const logs = store.queue({ signal: 'logs', ...options })
  const traces = store.queue({ signal: 'traces', ...options })
  const big = (signal: 'logs' | 'traces'): Batch => ({
    ...batchOf([1]),
    signal,
    body: Buffer.alloc(50_000),
  })
  assert.equal(logs.capacityItems, 4_000_000 / usualItemBytes.logs)
  for (let i = 0; i < 60; i++) traces.push(big('traces'))
  // The bound is of all together, and while one has most of it another may have as much as that one.
  assert.equal(traces.capacityBytes, 4_000_000 - logs.bytes)
  assert.equal(logs.capacityBytes, Math.max(4_000_000 - traces.bytes, traces.bytes))
  assert.ok(traces.fill > 0.7 && traces.fill < 0.8, `${traces.fill}`)
  assert.equal(logs.fill, 0)
  for (let i = 0; i < 100 && logs.fill < 0.8; i++) logs.push(big('logs'))
  let lost = 0
  const state = () => [logs.fill, logs.bytes, traces.bytes].join(' ')
  assert.equal(logs.items, logs.pushedItems, 'none of the logs gave way')
  lost = traces.pushedItems - traces.items
  assert.ok(lost > 0, `some of the traces did: ${state()}`)
  assert.ok(logs.fill >= 0.8 && logs.bytes < traces.bytes, state())
  await store.close()
})
