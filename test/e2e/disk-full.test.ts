// owns: ports
// A file system that fills while the receiver is down: nobody ends, nothing is lost uncounted, and it goes on by itself
// when there is room (P6 of docs/develop/pipeline.md).
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { withoutRoot } from '../helpers/host-needs.ts'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { startPeers } from '../helpers/peers.ts'
import { freePort, until } from '../helpers/program.ts'
import { assertSettled, Shipment } from '../helpers/shipment.ts'

const Mi = 1024 * 1024
/** A disk is tried again every two seconds; a host may stand still for some. */
const soonMs = 20_000

/** A small file system of its own. */
function tmpfs(t: TestContext, size: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', directory])
  t.after(() => {
    // More than one may be stacked there.
    while (spawnSync('umount', ['-l', directory]).status === 0);
    rmSync(directory, { recursive: true })
  })
  return directory
}

test('a full disk costs what memory cannot hold, to the record, and no more', {
  skip: withoutRoot,
}, async t => {
  const mount = tmpfs(t, '24m')
  const port = await freePort()
  const env = {
    SVC_OTLP_ENDPOINT: `127.0.0.1:${port}`,
    SVC_QUEUES_LOGS_MEM_LIMIT: '1Mi',
    SVC_OTLP_COMPRESSION: 'none',
  }
  const shipment = new Shipment({ env, directory: join(mount, 'queue') })
  t.after(() => shipment.end())
  const { store } = shipment
  const add = async () => {
    shipment.add(100, 1000)
    await shipment.pipeline.flush(0)
    assert.ok(shipment.books.queued >= 0)
  }
  while (store.state.state === 'ok') await add()
  assert.match(store.state.reason, /free \d+ MiB there/)
  assert.deepEqual(shipment.books.dropped, {})
  for (let i = 0; i < 40; i++) await add()
  const { dropped } = shipment.books
  assert.deepEqual(Object.keys(dropped), ['disk_full'])
  assert.ok(shipment.made - dropped.disk_full! > 15_000, JSON.stringify(dropped))

  // Where the receiver comes back, what it takes makes room.
  const receiver = await startReceiver({ keep: true, port })
  t.after(() => receiver.close())
  await shipment.until('the disk has room', () => store.state.state === 'ok')
  await add()
  await shipment.emptied()
  assertSettled(shipment, [receiver], { dropped })
})

test('a disk that others fill and empty holds nothing up for long', { skip: withoutRoot }, async t => {
  const mount = tmpfs(t, '24m')
  const port = await freePort()
  const env = { SVC_OTLP_ENDPOINT: `127.0.0.1:${port}` }
  const shipment = new Shipment({ env, directory: join(mount, 'queue') })
  t.after(() => shipment.end())
  shipment.add(500, 200)
  await shipment.until('they are on the disk', () => shipment.logs.accepted === 500)
  const other = join(mount, 'other')
  writeFileSync(other, Buffer.alloc(20 * Mi))
  shipment.add(500, 200)
  await shipment.until('the disk is full', () => shipment.store.state.state === 'degraded')
  rmSync(other)
  const since = performance.now()
  await shipment.until('the disk has room', () => shipment.store.state.state === 'ok')
  const tookMs = performance.now() - since
  assert.ok(tookMs <= soonMs, `${tookMs} ms`)
  await shipment.pipeline.close()
  assert.deepEqual(shipment.books.dropped, {}, 'what was in memory is on the disk')
  const receiver = await startReceiver({ keep: true, port })
  t.after(() => receiver.close())
  const next = new Shipment({ env, directory: join(mount, 'queue') })
  t.after(() => next.end())
  assert.equal(next.logs.recovered, 1000)
  await next.emptied()
  assert.equal(receiver.counts.logs, 1000)
  assert.equal(new Set(receiver.lines.map(({ body }) => body)).size, 1000)
})

test('a file system that becomes read-only, and writable again, holds nothing up for long', {
  skip: withoutRoot,
}, async t => {
  const mount = tmpfs(t, '24m')
  const port = await freePort()
  const env = { SVC_OTLP_ENDPOINT: `127.0.0.1:${port}` }
  const shipment = new Shipment({ env, directory: join(mount, 'queue') })
  t.after(() => shipment.end())
  const { store } = shipment
  // Another mount over it, as the kernel refuses to remount while the lock's file is open for writing.
  execFileSync('mount', ['--bind', mount, mount])
  execFileSync('mount', ['-o', 'remount,bind,ro', mount])
  shipment.add(500, 200)
  await shipment.until('the disk is read-only', () => store.state.state === 'degraded')
  assert.match(store.state.reason, /EROFS/)
  assert.deepEqual(shipment.books.dropped, {})
  execFileSync('umount', [mount])
  const since = performance.now()
  await shipment.until('the disk can be written', () => store.state.state === 'ok')
  const tookMs = performance.now() - since
  assert.ok(tookMs <= soonMs, `${tookMs} ms`)
  shipment.add(500, 200)
  const receiver = await startReceiver({ keep: true, port })
  t.after(() => receiver.close())
  await shipment.emptied()
  assertSettled(shipment, [receiver])
})

test('an agent on a full disk goes on, says so, and delivers everything', {
  skip: withoutRoot || withoutBpf,
}, async t => {
  const mount = tmpfs(t, '24m')
  const port = await freePort()
  const peers = await startPeers()
  t.after(() => peers.close())
  const agent = await AgentProcess.start({
    endpoint: `127.0.0.1:${port}`,
    ports: [peers.port],
    config: {
      self_telemetry: { debug: true },
      pipeline: {
        export: { batch: { timeout: '50ms' }, queue: { enabled: true, directory: join(mount, 'queue') } },
      },
    },
  })
  t.after(() => agent.kill())
  interface Stats {
    readonly signals: {
      readonly traces: {
        readonly received: number
        readonly exported: number
        readonly rejected: number
        readonly dropped: Readonly<Record<string, number>>
        readonly queued: number
      }
    }
  }
  const traces = async () => {
    const balance = (await agent.document<Stats>('/debug/pipeline/stats')).signals.traces
    const { excluded_path: excluded = 0, ...dropped } = balance.dropped
    assert.deepEqual(
      Object.entries(dropped).filter(([, items]) => items > 0),
      [],
    )
    assert.equal(balance.received, balance.exported + balance.rejected + excluded + balance.queued)
    return balance
  }
  const diskIs = (state: string) => async () => {
    interface Status {
      readonly degraded: readonly { readonly subsystem: string; readonly reason: string }[]
    }
    const { degraded } = await agent.document<Status>('/status')
    const said = degraded.find(({ subsystem }) => subsystem === 'queue')?.reason ?? ''
    assert.equal(/svc keeps \d+ MiB free for other programs|ENOSPC|^$/.test(said), true, said)
    return (said === '') === (state === 'ok')
  }
  const other = join(mount, 'other')
  writeFileSync(other, Buffer.alloc(20 * Mi))
  await peers.requests(500, '/status/200')
  await until('it says that the disk is full', 20_000, diskIs('degraded'))
  assert.equal((await agent.metrics()).sum('svc_disk_queue_degraded'), 1)
  await until('all spans are taken in', 20_000, async () => (await traces()).queued >= 1000)
  assert.equal((await agent.get('/ready')).status, 503, 'the receiver is down')
  assert.equal((await agent.get('/healthz')).status, 200)
  rmSync(other)
  const since = performance.now()
  await until('it says that there is room', 60_000, diskIs('ok'))
  const tookMs = performance.now() - since
  assert.ok(tookMs <= soonMs, `${tookMs} ms`)
  const receiver = await startReceiver({ port })
  t.after(() => receiver.close())
  await until('all is delivered', 20_000, async () => (await traces()).exported >= 1000)
  await until('it is ready', 20_000, async () => (await agent.get('/ready')).status === 200)
  assert.deepEqual(await agent.stop(), { code: 0, signal: null })
})
