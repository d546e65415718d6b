// owns: host
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { type Receiver, startReceiver } from '../helpers/otlp-receiver.ts'
import { until } from '../helpers/program.ts'

type Names = Readonly<Record<string, unknown>>

/** How often a process made a call, by its error: '' for none. */
function calls(receiver: Receiver, pid: number, name: string): Record<string, number> {
  const found: Record<string, number> = {}
  for (const line of receiver.lines) {
    if (line.name !== 'svc.syscall.duration' || (line.resource as Names)['process.pid'] !== pid) continue
    for (const { attributes, count } of line.points as { attributes: Names; count: number }[])
      if (attributes['syscall.name'] === name) found[String(attributes['error.type'] ?? '')] = count
  }
  return found
}

test('system calls are told by process, name and error, once they are asked for', {
  skip: withoutBpf,
}, async () => {
  const receiver = await startReceiver({ keep: true })
  const agent = await AgentProcess.start({
    endpoint: receiver.endpoint,
    config: { agent: { ebpf: { syscalls: { enabled: true, include: ['umask', 'mkdir'] } } } },
  })
  try {
    const script = `
import os
for i in range(500): os.umask(18)
for i in range(70):
  try: os.mkdir('/nonexistent/directory')
  except FileNotFoundError: pass
print(os.getpid())`
    const pid = Number(execFileSync('python3', ['-c', script], { encoding: 'utf8' }))
    await until(
      () => `the calls are told: ${JSON.stringify(calls(receiver, pid, 'mkdir'))}`,
      20_000,
      // What is told first may be of a moment in between.
      () =>
        (calls(receiver, pid, 'umask')[''] ?? 0) >= 500 && (calls(receiver, pid, 'mkdir').ENOENT ?? 0) >= 70,
    )
    assert.deepEqual(calls(receiver, pid, 'umask'), { '': 500 })
    assert.deepEqual(calls(receiver, pid, 'mkdir'), { ENOENT: 70 })
  } finally {
    await agent.stop()
    await receiver.close()
  }
})
