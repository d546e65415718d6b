// owns: host
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { until } from '../helpers/program.ts'

test('starts and ends of processes are told as log records and counted', { skip: withoutBpf }, async () => {
  const receiver = await startReceiver({ keep: true })
  const agent = await AgentProcess.start({
    endpoint: receiver.endpoint,
    config: { agent: { ebpf: { process: { enabled: true } } } },
  })
  try {
    const { stdout } = spawnSync('/bin/sh', ['-c', 'echo $$; exec /bin/sh -c "exit 7" # secret'])
    const pid = Number(stdout)
    const told = () =>
      receiver.lines.filter(
        ({ signal, attributes }) =>
          signal === 'logs' && (attributes as Record<string, unknown>)['process.pid'] === pid,
      )
    await until(
      () => `three records are there: ${told().length}`,
      20_000,
      () => told().length >= 3,
    )
    assert.deepEqual(
      told().map(({ name, severity }) => [name, severity]),
      [
        ['svc.process.exec', 9],
        ['svc.process.exec', 9],
        ['svc.process.exit', 9],
      ],
    )
    const { attributes } = told().at(-1)!
    assert.equal((attributes as Record<string, unknown>)['process.exit.code'], 7)
    assert.ok(!JSON.stringify(told()).includes('secret'))
    const counted = () => receiver.lines.some(({ name }) => name === 'svc.process.execs')
    await until('they are counted', 20_000, counted)
  } finally {
    await agent.stop()
    await receiver.close()
  }
})

test('where eBPF is required, process events and system calls that are refused end the start with exit code 3', async () => {
  const ebpf = {
    required: true,
    network: { enabled: false },
    process: { enabled: true },
    syscalls: { enabled: true },
  }
  const wrapper = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
  const agent = await AgentProcess.spawn({ wrapper, config: { agent: { ebpf } } })
  assert.deepEqual(await agent.exited, { code: 3, signal: null }, agent.logText())
  const { msg } = agent.log.at(-1)!
  for (const said of ['process events', 'system calls', 'CAP_BPF'])
    assert.ok(msg.includes(said), `${said}: ${msg}`)
})
