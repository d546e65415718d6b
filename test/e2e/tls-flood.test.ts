// owns: ports
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { AgentProcess, largeRing } from '../helpers/agent-process.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import { Program, until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'
import { client, server, Telemetry } from '../helpers/telemetry.ts'
import { withoutTracepoints, withTracefs } from '../helpers/tracefs.ts'

const stranger = 65534
/** Without shares most of these lose a span by `sock`, and one of twenty by `syscalls`. */
const rounds = soak ? 20 : 8

for (const backend of soak ? ['auto', 'syscalls'] : ['auto'])
  test(`${backend}: who calls with ever other sessions of TLS takes no request of others`, {
    skip: withoutTracepoints,
  }, async context => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-flood-'))
    chmodSync(directory, 0o755)
    const program = join(directory, 'flood')
    execFileSync('gcc', ['-O0', '-rdynamic', '-o', program, 'test/fixtures/tls/session-flood.c'])
    const certificates = makeCertificates()
    const telemetry = await Telemetry.start()
    const flood = spawn(program, ['1000000'], { uid: stranger, gid: stranger, stdio: 'ignore', cwd: '/' })
    context.after(async () => {
      flood.kill()
      await telemetry.close()
      certificates.remove()
      rmSync(directory, { recursive: true })
    })
    const shop = await Program.start('../tls/shop-python.py', {
      key: certificates.file('server.key'),
      cert: certificates.file('server.pem'),
    })
    context.after(() => shop.close())
    const { port } = shop.ready
    const agent = await AgentProcess.start({
      endpoint: telemetry.endpoint,
      ports: [port],
      wrapper: backend === 'syscalls' ? withTracefs : [],
      config: { agent: { ebpf: { backend, ...largeRing } } },
    })
    context.after(() => agent.stop())
    await until('both are read', 12_000, async () => {
      const { tls } = await agent.document<{ tls: { path: string; attached: boolean }[] }>('/status/ebpf')
      return ['libssl', program].every(path => tls.some(each => each.attached && each.path.includes(path)))
    })
    const buyer = await Program.start('../tls/buyer-python.py', {
      port,
      sockets: 1,
      ca: certificates.file('ca.pem'),
    })
    context.after(() => buyer.close())
    await buyer.ask(`ask ${rounds} /slow/#`)
    await telemetry.settle(agent)
    assert.deepEqual(
      [telemetry.spans(port, client).length, telemetry.spans(port, server).length],
      [rounds, rounds],
    )
  })
