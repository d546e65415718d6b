import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, test } from 'node:test'
import { NotifySocket } from '../../test/helpers/notify-socket.ts'
import { pause, until } from '../../test/helpers/program.ts'
import { createLogger } from '../foundation/lib/logger.ts'
import { ServiceNotify } from './service-notify.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-notify-'))
const said: string[] = []
const log = createLogger({ level: 'debug', format: 'json', write: line => void said.push(line) })
const open: { close(): unknown }[] = []
let sockets = 0

afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
  said.length = 0
})
after(() => rmSync(directory, { recursive: true }))

async function peer(
  address = join(directory, `${++sockets}`),
): Promise<{ socket: NotifySocket; address: string }> {
  const socket = await NotifySocket.open(address)
  open.push(socket)
  return { socket, address }
}

function notify(env: NodeJS.ProcessEnv): ServiceNotify {
  const service = new ServiceNotify(log, env)
  open.push(service)
  return service
}

const well = { status: () => 'all is well', stuck: () => undefined }

test('a start, a reload and an end are told, by a path and by an abstract name', async () => {
  for (const at of [undefined, `@svc-test-${process.pid}`]) {
    const { socket, address } = await peer(at)
    const service = notify({ NOTIFY_SOCKET: address })
    service.ready(well)
    const before = process.hrtime.bigint() / 1000n
    assert.equal(await service.reload(async () => 7), 7)
    await assert.rejects(
      service.reload(async () => {
        throw new Error('refused')
      }),
      /refused/,
    )
    const afterwards = process.hrtime.bigint() / 1000n
    service.stopping(1500, 'ends')
    assert.equal(await service.reload(async () => 8), 8) // which would call the end off
    await socket.told(/^STOPPING=1$/)
    const [ready, first, again, second, last, ...rest] = socket.notices
    assert.deepEqual(
      rest.map(({ lines }) => lines),
      [['STOPPING=1', 'EXTEND_TIMEOUT_USEC=1500000', 'STATUS=ends']],
    )
    assert.deepEqual(ready, { pid: process.pid, lines: ['READY=1', 'STATUS=all is well'] })
    for (const { lines } of [again!, last!]) assert.deepEqual(lines, ['READY=1'])
    for (const { lines } of [first!, second!]) {
      assert.equal(lines[0], 'RELOADING=1')
      const at = BigInt(/^MONOTONIC_USEC=(\d+)$/.exec(lines[1]!)![1]!)
      assert.ok(before <= at && at <= afterwards)
    }
  }
  assert.deepEqual(said, [])
})

test('the variables are taken out of the environment, so that children do not answer in its place', () => {
  const env = { NOTIFY_SOCKET: '', WATCHDOG_USEC: '1', WATCHDOG_PID: '2', OTHER: '3' }
  notify(env).ready(well)
  assert.deepEqual(env, { OTHER: '3' })
  assert.deepEqual(said, [])
})

test('signs of life come as often as asked for, while the process does its work', async () => {
  const { socket, address } = await peer()
  let stuck: string | undefined
  const service = notify({ NOTIFY_SOCKET: address, WATCHDOG_USEC: '100000', WATCHDOG_PID: `${process.pid}` })
  await pause(120)
  assert.deepEqual(await socket.take(), [], 'none before the start is over')
  service.ready({ status: () => 'well', stuck: () => stuck })
  await until('three signs of life', 20_000, async () => {
    return (await socket.take()).filter(line => line === 'WATCHDOG=1').length > 2
  })
  stuck = 'the event loop was stuck for 11.0 s'
  await socket.told(/^STATUS=stuck: the event loop was stuck for 11\.0 s$/)
  socket.forget()
  await pause(300)
  assert.deepEqual(await socket.take(), [])
  assert.equal(said.length, 1)
  assert.match(said[0]!, /"level":"error".*the service manager restarts it unless it recovers.*11\.0 s/)
  stuck = undefined
  await socket.told(/^WATCHDOG=1$/)
})

test('who is not watched gives no signs of life', async () => {
  for (const env of [
    { WATCHDOG_USEC: '100000', WATCHDOG_PID: '1' },
    { WATCHDOG_USEC: '0' },
    { WATCHDOG_USEC: '-100000' },
    { WATCHDOG_USEC: '100000x' },
    { WATCHDOG_USEC: '999999999999999999' },
    {},
  ]) {
    const { socket, address } = await peer()
    notify({ NOTIFY_SOCKET: address, ...env }).ready(well)
    await pause(150)
    await socket.told(/^READY=1$/)
    assert.ok(!socket.lines.includes('WATCHDOG=1'), JSON.stringify(env))
  }
})

test('a status is one line of bounded length', async () => {
  for (const [status, told] of [
    ['a\nREADY=0\r\n\u0000b ', 'a READY=0 b'],
    ['é'.repeat(256), 'é'.repeat(256)],
    ['é'.repeat(257), `${'é'.repeat(254)}…`],
    [`x${'é'.repeat(256)}`, `x${'é'.repeat(254)}…`],
  ] as const) {
    const { socket, address } = await peer()
    notify({ NOTIFY_SOCKET: address }).ready({ ...well, status: () => status })
    await socket.told(/^READY=1$/)
    assert.deepEqual(socket.notices[0]!.lines, ['READY=1', `STATUS=${told}`])
  }
})

test('a manager that is busy learns of the last change as soon as it reads', async () => {
  const { socket, address } = await peer()
  await socket.hold()
  const service = notify({ NOTIFY_SOCKET: address })
  service.ready(well)
  // Any system holds fewer than these (net.unix.max_dgram_qlen).
  for (let i = 0; i < 2000; i++) await service.reload(async () => undefined)
  service.stopping(1000, 'ends')
  await socket.go()
  await socket.told(/^STOPPING=1$/)
  assert.equal(socket.lines.at(-1), 'STATUS=ends')
  assert.deepEqual(said, [])
})

test('a manager that cannot be told is logged once, and nothing else happens', async () => {
  for (const address of [join(directory, 'absent'), 'vsock:2:1234', `/${'x'.repeat(150)}`]) {
    const service = notify({ NOTIFY_SOCKET: address, WATCHDOG_USEC: '10000' })
    service.ready(well)
    await service.reload(async () => undefined)
    await pause(50)
    service.stopping(1, 'ends')
    assert.equal(said.length, 1, said.join(''))
    assert.match(said[0]!, /"level":"warn".*cannot report the state of svc to the service manager/)
    said.length = 0
  }
})
