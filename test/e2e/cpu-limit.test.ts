// owns: ports
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { freePort, until } from '../helpers/program.ts'
import { Telemetry } from '../helpers/telemetry.ts'
import { startNginx } from '../helpers/web-servers.ts'

const run = promisify(execFile)

interface Status {
  readonly cpu: { readonly used_cores: number; readonly reduced: readonly { name: string; effect: string }[] }
  readonly degraded: readonly { readonly subsystem: string; readonly reason: string }[]
}

test('an agent that takes more CPU than it may makes fewer spans, says so, and counts every call', {
  skip: withoutBpf,
}, async () => {
  const telemetry = await Telemetry.start()
  after(() => telemetry.close())
  const port = await freePort()
  const nginx = await startNginx(port)
  after(() => nginx.close())
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [port],
    config: {
      limits: { cpu: 0.05 },
      agent: { ebpf: { network: { sampling: { max_spans_per_second: 20_000 } } } },
    },
  })
  after(() => agent.stop())
  let requests = 0
  let isLowered = false
  await until('spans are lowered', 60_000, async () => {
    const { stdout } = await run('h2load', [
      '--h1',
      '-n6000',
      '-c4',
      '--rps=1500',
      `http://127.0.0.1:${port}/items/1`,
    ])
    assert.match(stdout, /6000 succeeded/)
    requests += 6000
    const status = await agent.document<Status>('/status')
    isLowered = status.cpu.reduced.some(({ name }) => name === 'spans')
    if (isLowered) assert.ok(status.degraded.some(({ subsystem }) => subsystem === 'cpu'))
    return isLowered
  })
  // These are over the lowered budget.
  await run('h2load', ['--h1', '-n8000', '-c4', `http://127.0.0.1:${port}/items/1`])
  requests += 8000
  await telemetry.settle(agent)
  await until(
    () => `all requests are counted: ${telemetry.servedBy(...nginx.pids)} of ${requests}`,
    20_000,
    () => telemetry.servedBy(...nginx.pids) >= requests,
  )
  assert.equal(telemetry.servedBy(...nginx.pids), requests)
  const { text } = await agent.get('/metrics')
  const lost = Number(/^svc_spans_dropped_total\{reason="cpu_limit"\} (\d+)$/m.exec(text)?.[1])
  // A call or two of svc's own answers are among them.
  const without = 2 * requests - telemetry.spans(port).length
  assert.ok(without > 0 && without <= lost && lost - without < 10, `${without} without a span, ${lost} lost`)
  const metrics = await agent.metrics()
  assert.equal(
    metrics.sum('svc_spans_collected_total'),
    metrics.sum('svc_spans_exported_total') + metrics.sum('svc_spans_dropped_total'),
  )
  assert.match(text, /^svc_cpu_limit_cores 0\.05$/m)
  assert.match(text, /^svc_cpu_lowered_steps\{part="spans"\} [1-9]/m)
  assert.match(agent.logText(), /CPU usage of svc over limits.cpu: at most \d+ spans per second/)
})
