// owns: process
// All faults of a receiver in random order, with changes of the configuration and restarts among them: the books are
// exact at every look, and in the end every record has arrived or is counted. In a soak for longer.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Answer, type Receiver, startReceiver } from '../helpers/otlp-receiver.ts'
import { pause } from '../helpers/program.ts'
import { arrivals, Shipment } from '../helpers/shipment.ts'
import { soak } from '../helpers/soak.ts'

const rounds = soak ? 2000 : 100

const below = (most: number): number => Math.floor(Math.random() * most)
const ok: Answer = { kind: 'ok' }

/** Answers of a receiver, one of which holds for a round. */
const moods: ((receiver: Receiver) => Receiver['answer'])[] = [
  () => () => ok,
  () => () => ok,
  () => () => pause(below(30)).then(() => ok),
  () => () => ({ kind: 'refuse', code: 14 }),
  () => () => ({ kind: 'refuse', code: 8, retryMs: 20 }),
  () => () => ({ kind: 'refuse', code: 16 }),
  () => () => (below(2) ? { kind: 'refuse', code: 13 } : ok),
  () => (_, lines) =>
    lines.some(({ body }) => (body as string).includes('7')) ? { kind: 'refuse', code: 3 } : ok,
  () =>
    ({ items }) =>
      items > 5 ? { kind: 'refuse', code: 8, message: 'message larger than max' } : ok,
  () => () => (below(2) ? { kind: 'stall' } : ok),
  () => () => (below(2) ? pause(250).then(() => ok) : ok),
  () => () => (below(3) ? ok : { kind: 'cut' }),
  receiver => () => {
    if (below(3) === 0) receiver.cut()
    return ok
  },
  receiver => () => {
    if (below(3) === 0) receiver.goAway()
    return ok
  },
  () => () => ({ kind: 'ok', message: 'a warning' }),
]

function settings(endpoint: string): Record<string, string> {
  return {
    SVC_OTLP_ENDPOINT: endpoint,
    SVC_OTLP_TIMEOUT: '200ms',
    SVC_OTLP_COMPRESSION: ['gzip', 'zstd', 'none'][below(3)]!,
    SVC_OTLP_CONCURRENCY: String(1 + below(4)),
    SVC_OTLP_MAX_MESSAGE_SIZE: ['64Ki', '4Mi'][below(2)]!,
    SVC_QUEUES_LOGS_BATCH_SIZE: String(1 + below(60)),
    // What waits for a moment of the host to be compressed is to fit.
    SVC_QUEUES_LOGS_MEM_LIMIT: ['4Mi', '20Mi'][below(2)]!,
    SVC_PIPELINE_EXPORT_QUEUE_FSYNC: ['0s', '50ms'][below(2)]!,
  }
}

test(`through ${rounds} rounds of faults, changes and restarts every record arrives or is counted`, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-gauntlet-'))
  const receivers = [await startReceiver({ keep: true }), await startReceiver({ keep: true })] as const
  t.after(async () => {
    for (const receiver of receivers) await receiver.close()
    rmSync(directory, { recursive: true })
  })
  const queue = join(directory, 'queue')
  const somewhere = () => settings(receivers[below(2)]!.endpoint)
  let shipment = new Shipment({ env: somewhere(), directory: queue })
  t.after(() => shipment.end())
  const dropped: Record<string, number> = {}
  let restarts = 0
  const close = async (): Promise<number> => {
    await shipment.end()
    const { books } = shipment
    for (const [reason, items] of Object.entries(books.dropped))
      dropped[reason] = (dropped[reason] ?? 0) + items
    return books.queued
  }

  for (let round = 0; round < rounds; round++) {
    for (const receiver of receivers) receiver.answer = moods[below(moods.length)]!(receiver)
    for (let i = below(4); i >= 0; i--) {
      shipment.add(below(60), below(3) ? 0 : 2000)
      assert.ok(shipment.books.queued >= 0)
      await pause(below(15))
    }
    if (below(4) === 0) shipment.change(somewhere())
    if (below(10) > 0) continue
    // What it is about to queue is queued, so that the end costs nothing.
    await shipment.pipeline.flush(0)
    const first = shipment.made
    const kept = await close()
    shipment = new Shipment({ env: somewhere(), directory: queue, first })
    restarts++
    // Of a batch that was delivered in parts, all comes again.
    assert.ok(shipment.logs.recovered >= kept, `${shipment.logs.recovered} of ${kept}`)
  }
  for (const receiver of receivers) receiver.answer = () => ok
  await shipment.emptied()
  await close()
  const { missing, again } = arrivals(receivers, shipment.made)
  const lost = Object.values(dropped).reduce((sum, items) => sum + items, 0)
  t.diagnostic(
    `${shipment.made} records, ${restarts} restarts, ${again} arrived again, ${JSON.stringify(dropped)}`,
  )
  // A record of such a batch may be counted as lost and arrive with the batch.
  assert.ok(missing <= lost, `${missing} records are missing, and ${lost} are counted as lost`)
  const reasons = Object.keys(dropped).filter(reason => !['internal', 'invalid_argument'].includes(reason))
  assert.deepEqual(reasons, [])
})
