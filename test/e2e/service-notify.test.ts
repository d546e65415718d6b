// owns: process
// What a service manager is told by the agent itself.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { NotifySocket } from '../helpers/notify-socket.ts'
import { pause, until } from '../helpers/program.ts'
import { onlyInSoak } from '../helpers/soak.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-service-'))
let socket: NotifySocket
let agent: AgentProcess

afterEach(async () => {
  await agent?.kill()
  await socket?.close()
})
after(() => rmSync(directory, { recursive: true }))

async function start(name: string, watchdogUs: number): Promise<void> {
  const address = join(directory, name)
  socket = await NotifySocket.open(address)
  agent = await AgentProcess.start({
    config: { agent: { ebpf: { enabled: false }, logs: { container_logs: true } } },
    env: { NOTIFY_SOCKET: address, WATCHDOG_USEC: `${watchdogUs}` },
  })
}

test('a service manager learns of the start, reloads, stops of all work, and the end', async () => {
  await start('whole', 400_000)
  await socket.told(/^READY=1$/)
  assert.match(await socket.told(/^STATUS=/), /^STATUS=.*runs: /)
  assert.ok(agent.log.some(({ msg }) => msg === 'started'))
  await socket.told(/^WATCHDOG=1$/)

  socket.forget()
  agent.configure({ log_level: 'debug' })
  agent.signal('SIGHUP')
  await socket.told(/^READY=1$/)
  const reload = socket.notices.findIndex(({ lines }) => lines[0] === 'RELOADING=1')
  assert.ok(reload >= 0 && reload < socket.notices.findIndex(({ lines }) => lines[0] === 'READY=1'))

  // A loop that does not turn sends nothing.
  agent.signal('SIGSTOP')
  await pause(500)
  await socket.take()
  socket.forget()
  await pause(1500)
  assert.deepEqual(await socket.take(), [])
  agent.signal('SIGCONT')
  await socket.told(/^WATCHDOG=1$/)

  socket.forget()
  assert.deepEqual(await agent.stop(), { code: 0, signal: null })
  await socket.told(/^STOPPING=1$/)
  const bound = Number(/EXTEND_TIMEOUT_USEC=(\d+)/.exec(socket.lines.join())?.[1])
  assert.ok(bound > 30e6 && bound <= 60e6, `${bound}`)
  for (const { pid } of socket.notices) assert.equal(pid, agent.pid)
})

test('after a loop that was stuck for long the manager hears nothing until /healthz is well again', {
  skip: onlyInSoak,
}, async () => {
  await start('stuck', 400_000)
  await socket.told(/^WATCHDOG=1$/)
  agent.signal('SIGSTOP')
  await pause(12_000)
  await socket.take()
  socket.forget()
  agent.signal('SIGCONT')
  await socket.told(/^STATUS=stuck: the event loop was stuck for /)
  assert.ok(!socket.lines.includes('WATCHDOG=1'))
  await until('/healthz is well', 30_000, async () => (await agent.get('/healthz')).status === 200)
  await socket.told(/^WATCHDOG=1$/)
  await socket.told(/^STATUS=.*runs: /)
})
