// owns: host
// The demo: what deploy/demo promises to show is on the map.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { MapLine } from '../../src/view/api/ui/documents.ts'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { demoDirectory, demoPorts, startDemo } from '../helpers/demo.ts'
import { until } from '../helpers/program.ts'

test('the map shows the three services of the demo, who calls whom, and what fails', {
  skip: withoutBpf,
}, async t => {
  const ports = await demoPorts()
  const agent = await startAgent(t, Object.values(ports))
  const demo = startDemo({ ports, agentPort: agent.port, perSecond: 30 })
  t.after(() => demo.end())
  const wanted = ['load > shop', 'shop > orders', 'shop > stock', 'orders > stock']
  let map: MapLine | undefined
  await until(
    () => `the map shows all calls, and failures of orders and stock: ${JSON.stringify(map)}\n${demo.talk()}`,
    60_000,
    async () => {
      map = await agent.document<MapLine>('/ui/api/map')
      const failing = map.edges.filter(({ errors_percent }) => errors_percent > 0)
      const names = new Set(map.edges.map(edge => nameOf(map!, edge)))
      return (
        wanted.every(name => names.has(name)) && failing.some(edge => nameOf(map!, edge) === 'shop > orders')
      )
    },
  )
  // The map may be there before the demo has asked for a link to it.
  await until(
    () => `the demo says where to look: ${demo.talk()}`,
    30_000,
    () => demo.talk().includes(`http://127.0.0.1:${agent.port}/ui/map`),
  )

  assert.equal(await demo.end(), 0)
  // Whoever asks a group that has ended is told so.
  assert.throws(() => process.kill(-demo.group, 0), { code: 'ESRCH' })
})

function nameOf({ nodes }: MapLine, { from, to }: MapLine['edges'][number]): string {
  const name = (id: string) => nodes.find(node => node.id === id)?.name
  return `${name(from)} > ${name(to)}`
}

async function startAgent(t: TestContext, ports: readonly number[]): Promise<AgentProcess> {
  const agent = await AgentProcess.start({ ports })
  t.after(() => agent.stop())
  return agent
}

test('where a port is taken the demo starts nothing, and says which to choose', async t => {
  const server = createServer()
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  const { status, stderr } = spawnSync(join(demoDirectory, 'run'), {
    encoding: 'utf8',
    env: { ...process.env, ORDERS_PORT: `${port}`, SHOP_PORT: '1', STOCK_PORT: '2' },
  })
  assert.equal(status, 1)
  assert.match(stderr, new RegExp(`port ${port} is taken: choose another with ORDERS_PORT=PORT`))
})
