import assert from 'node:assert/strict'
import { createServer } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { defaults } from '../config/index.ts'
import { exportChecks, managementCheck, runtimeChecks } from './doctor-checks.ts'

test('the runtime is judged by its line, and by the bounds on its heap', () => {
  const bounds = ['--optimize-for-size', '--max_semi_space_size=1', '--max-old-space-size=64']
  const check = (version: string, flags: string[], want: string[]) =>
    assert.deepEqual(
      runtimeChecks(version, flags).map(({ state }) => state),
      want,
    )
  check('v24.21.0', bounds, ['ok', 'ok'])
  check('v22.18.0', [], ['ok', 'note'])
  check('v20.20.2', bounds, ['limited', 'ok'])
  check('v20.14.0', bounds, ['missing', 'ok'])
  check('v18.0.0', bounds, ['missing', 'ok'])
})

test('a receiver is good when it takes connections, and each is tried once', async () => {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = defaults()
  const own = { ...config.otlp.traces, endpoint, insecure: true }
  const { traces: _traces, metrics, logs, profiles } = config.otlp
  const otlp = {
    ...config.otlp,
    endpoint,
    insecure: true,
    traces: own,
    metrics: { ...metrics, insecure: true },
  }
  const off = { logs: { ...logs, enabled: false }, profiles: { ...profiles, enabled: false } }
  const checks = await exportChecks({ ...config, otlp: { ...otlp, ...off } })
  await new Promise(resolve => server.close(resolve))
  assert.deepEqual(checks, [
    { name: 'export', state: 'ok', detail: `${endpoint} takes connections, in plain text` },
  ])
})

test('a receiver without TLS where TLS is meant is told, with the mend', async () => {
  const server = createTcpServer(socket => {
    socket.on('error', () => undefined)
    socket.resume()
    socket.end('no')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = defaults()
  const [check] = await exportChecks({ ...config, otlp: { ...config.otlp, endpoint } })
  await new Promise(resolve => server.close(resolve))
  assert.equal(check!.state, 'missing')
  assert.match(check!.mend!, /otlp\.insecure: true/)
})

test('no receiver and no management API are notes, not problems', async () => {
  const config = defaults()
  assert.equal((await exportChecks(config))[0]!.state, 'note')
  assert.equal((await managementCheck({ ...config.self_telemetry, enabled: false })).state, 'note')
})
