// owns: process
// The same as receiver-faults.test.ts over OTLP/HTTP, in both of its forms.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type HttpAnswer, type HttpReceiver, startHttpReceiver } from '../helpers/otlp-http-receiver.ts'
import { freePort, pause, until } from '../helpers/program.ts'
import { assertSettled, Shipment, type ShipmentOptions } from '../helpers/shipment.ts'

const forms = ['http/protobuf', 'http/json'] as const

async function receive(t: TestContext, port = 0): Promise<HttpReceiver> {
  const receiver = await startHttpReceiver({ keep: true, port })
  t.after(() => receiver.close())
  return receiver
}

function ship(
  t: TestContext,
  endpoint: string,
  form: string,
  { env, ...options }: Partial<ShipmentOptions> = {},
): Shipment {
  const shipment = new Shipment({
    ...options,
    env: {
      SVC_OTLP_ENDPOINT: endpoint,
      SVC_OTLP_PROTOCOL: form,
      SVC_QUEUES_LOGS_BATCH_SIZE: '10',
      ...env,
    },
  })
  t.after(() => shipment.end())
  return shipment
}

/** OTLP specification, "OTLP/HTTP Response", and what svc makes of the rest. Text: dropped with this reason. */
const statuses: Record<number, 'again' | 'parked' | 'divided' | 'left' | `http_${number}`> = {
  400: 'divided',
  401: 'parked',
  403: 'parked',
  404: 'left',
  408: 'http_408',
  413: 'divided',
  429: 'again',
  500: 'http_500',
  501: 'left',
  502: 'again',
  503: 'again',
  504: 'again',
}

for (const form of forms)
  test(`each HTTP status, with and without Retry-After, is answered as OTLP says (${form})`, async t => {
    const check = async (status: number, headers: Record<string, string>) => {
      const receiver = await receive(t)
      let times = 3
      let refused = 0
      let refusedAt = 0
      let nextAt = 0
      receiver.answer = ({ items }): HttpAnswer => {
        if (refusedAt > 0 && nextAt === 0) nextAt = performance.now()
        if (times-- <= 0) return { kind: 'ok' }
        refused += items
        refusedAt ||= performance.now()
        return { kind: 'refuse', status, headers, message: 'on purpose' }
      }
      const shipment = ship(t, receiver.endpoint, form, {
        env: { SVC_OTLP_CONCURRENCY: '1' },
        queue: headers['retry-after'] ? 'memory' : 'disk',
      })
      const what = statuses[status]!
      if (what === 'again' && headers['retry-after']) times = 1
      shipment.add(60)
      if (what === 'left') {
        await shipment.until('it was tried', () => refused > 0 && shipment.logs.requestsInFlight === 0)
        assert.deepEqual(shipment.books, {
          exported: 0,
          rejected: 0,
          dropped: { unimplemented: refused },
          queued: 60 - refused,
        })
        receiver.answer = () => ({ kind: 'ok' })
        shipment.change({
          SVC_OTLP_ENDPOINT: receiver.endpoint,
          SVC_OTLP_PROTOCOL: form,
          SVC_OTLP_HEADERS: '{"x-other": "1"}',
        })
      }
      await shipment.emptied()
      const reason = what === 'left' ? 'unimplemented' : what.startsWith('http_') ? what : ''
      assertSettled(shipment, [receiver], { dropped: reason ? { [reason]: refused } : {} })
      assert.ok(refused > 0)
      // Timers and the receiver's clock are not the same, and a date has whole seconds.
      if (what === 'again' && headers['retry-after'])
        assert.ok(nextAt - refusedAt >= 900, `${nextAt - refusedAt} ms`)
      await shipment.end()
    }
    const named = (status: number, hint: string) => (cause: Error) => {
      throw new Error(`${status}, ${hint}: ${cause.message}`, { cause })
    }
    const date = new Date(1_800_000_000_000)
    const inTwoSeconds = new Date(1_800_000_002_000)
    const runs: Promise<void>[] = []
    for (const status of Object.keys(statuses).map(Number)) {
      runs.push(check(status, { 'retry-after': '1' }).catch(named(status, 'Retry-After')))
      if (status === 503) {
        const byDate = { 'retry-after': inTwoSeconds.toUTCString(), date: date.toUTCString() }
        runs.push(check(status, byDate).catch(named(status, 'Retry-After with a date')))
      }
    }
    await Promise.all(runs)
    const all = Object.keys(statuses).map(Number)
    for (const some of [all.slice(0, 6), all.slice(6)])
      await Promise.all(some.map(status => check(status, {}).catch(named(status, 'no hint'))))
  })

for (const form of forms)
  test(`a receiver that is down, slow, resets or is late costs nothing (${form})`, async t => {
    const port = await freePort()
    const env = { SVC_OTLP_ENDPOINT: `http://127.0.0.1:${port}`, SVC_OTLP_PROTOCOL: form }
    const shipment = ship(t, env.SVC_OTLP_ENDPOINT, form)
    shipment.add(100)
    await shipment.until('it was tried', () => shipment.logs.failedRequests >= 3)
    assert.match(shipment.logs.destination!.lastError!, /ECONNREFUSED/)
    const receiver = await receive(t, port)
    await shipment.emptied()
    assertSettled(shipment, [receiver])

    receiver.answer = () => pause(50).then(() => ({ kind: 'ok' }))
    shipment.add(100)
    await shipment.emptied()
    assertSettled(shipment, [receiver])

    shipment.change({ ...env, SVC_OTLP_TIMEOUT: '200ms', SVC_QUEUES_LOGS_BATCH_SIZE: '10' })
    const faults: HttpAnswer[] = [{ kind: 'cut' }, { kind: 'stall' }, { kind: 'cut' }, { kind: 'stall' }]
    receiver.answer = () => faults.pop() ?? { kind: 'ok' }
    shipment.add(100)
    await shipment.emptied()
    // A host that stops for a moment makes others late, too.
    const before = assertSettled(shipment, [receiver], { duplicates: 'some' })

    // It takes them, and nobody hears of it.
    let unheard = 0
    let times = 6
    receiver.answer = async ({ items }) => {
      if (times-- <= 0) return { kind: 'ok' }
      unheard += items
      if (times % 2 === 0) receiver.cut()
      else await pause(500)
      return { kind: 'ok' }
    }
    shipment.add(100)
    await shipment.emptied()
    const all = () => shipment.made + before + unheard
    await until('the late ones are through', 60_000, () => receiver.counts.logs >= all())
    const again = assertSettled(shipment, [receiver], { duplicates: 'some' }) - before
    assert.ok(unheard > 0 && again >= unheard, `${again} of ${unheard}`)
  })

for (const form of forms)
  test(`what a receiver rejects of a request that it takes is counted (${form})`, async t => {
    const check = async (
      partial: { rejected?: number; message?: string },
      want: (items: number) => number,
    ) => {
      const receiver = await receive(t)
      let rejected = 0
      receiver.answer = ({ items }) => {
        rejected += want(items)
        return { kind: 'ok', ...partial }
      }
      const shipment = ship(t, receiver.endpoint, form)
      shipment.add(50)
      await shipment.emptied()
      assert.deepEqual(shipment.books, { exported: 50 - rejected, rejected, dropped: {}, queued: 0 })
      assert.equal(receiver.lines.length, 50, 'nothing was sent again')
      assert.equal(shipment.logs.destination?.lastError, null)
    }
    await check({ rejected: 1, message: 'one is bad' }, () => 1)
    await check({ rejected: 1000, message: 'more than there were' }, items => items)
    await check({ rejected: -5 }, () => 0)
    await check({ message: 'only a warning' }, () => 0)
  })

for (const form of forms)
  test(`the limit of the receiver is learned, and one bad record takes no other with it (${form})`, async t => {
    const receiver = await receive(t)
    const bad = Buffer.from('poison')
    receiver.answer = ({ body }) => {
      if (body.length > 20_000) return { kind: 'refuse', status: 413 }
      return body.includes(bad) ? { kind: 'refuse', status: 400, message: 'bad' } : { kind: 'ok' }
    }
    const env = { SVC_OTLP_COMPRESSION: 'none', SVC_QUEUES_LOGS_BATCH_SIZE: '1000' }
    const shipment = ship(t, receiver.endpoint, form, { env })
    shipment.add(400, 300)
    await shipment.emptied()
    assertSettled(shipment, [receiver])
    const { failedRequests } = shipment.logs
    assert.ok(failedRequests > 0)
    shipment.add(400, 300)
    await shipment.emptied()
    assertSettled(shipment, [receiver])
    assert.equal(shipment.logs.failedRequests, failedRequests, 'it has learned')
    shipment.add(30)
    shipment.addText('poison')
    shipment.add(30)
    await shipment.emptied()
    assertSettled(shipment, [receiver], { dropped: { http_400: 1 } })
  })

test('a backlog goes over another protocol when the configuration says so', async t => {
  const [first, second] = [await receive(t), await receive(t)]
  first.answer = () => ({ kind: 'refuse', status: 503 })
  const shipment = ship(t, first.endpoint, 'http/protobuf')
  shipment.add(1000, 100)
  await shipment.until('it was tried', () => shipment.logs.failedRequests >= 2)
  shipment.change({
    SVC_OTLP_ENDPOINT: second.endpoint,
    SVC_OTLP_PROTOCOL: 'http/json',
    SVC_OTLP_COMPRESSION: 'zstd',
  })
  shipment.add(500, 100)
  await shipment.emptied()
  assertSettled(shipment, [first, second])
  assert.deepEqual([first.counts.logs, second.counts.logs], [0, 1500])
})
