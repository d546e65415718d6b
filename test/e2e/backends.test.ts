// owns: ports
// The same traffic over each capture back end gives the same spans and the same counts.

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { AgentProcess, largeRing } from '../helpers/agent-process.ts'
import { Buyer, checkCounts, checkSpans, plan, requests } from '../helpers/load.ts'
import { freePort } from '../helpers/program.ts'
import { type SpanLine, Telemetry } from '../helpers/telemetry.ts'
import { withoutTracepoints, withTracefs } from '../helpers/tracefs.ts'
import { type Shop, startNginx, startNodeShop, startPythonShop } from '../helpers/web-servers.ts'

const telemetry = await Telemetry.start()
after(() => telemetry.close())

interface Traffic {
  readonly start: (port: number) => Promise<Shop>
  readonly buyer: 'node' | 'python'
  readonly keepAlive: boolean
}

function startAgent(backend: string, port: number): Promise<AgentProcess> {
  return AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [port],
    wrapper: withTracefs,
    config: {
      agent: { ebpf: { backend, ...largeRing } },
      queues: { traces: { mem_limit: '512Mi' } },
    },
  })
}

/** The spans of some traffic as one back end tells them, each one checked in every detail. */
async function spansOf(backend: string, { start, buyer, keepAlive }: Traffic): Promise<string[]> {
  const port = await freePort()
  const agent = await startAgent(backend, port)
  try {
    const shop = await start(port)
    const client = await Buyer.start(buyer, shop, plan(requests, shop), keepAlive)
    try {
      await client.go()
      await telemetry.arrived(2 * requests, port)
      await telemetry.settle(agent)
      checkSpans(telemetry, shop, client)
      checkCounts(telemetry, shop, client)
      return telemetry
        .spans(port)
        .map(span => comparable(span).replaceAll(`:${port}`, ':port'))
        .sort()
    } finally {
      await client.close()
      await shop.close()
    }
  } finally {
    await agent.stop()
    telemetry.forget()
  }
}

/** What of a span does not differ from one run to the next. */
function comparable({ kind, name, status, attributes, parentSpanId }: SpanLine): string {
  const kept = Object.entries(attributes).filter(([key]) => !key.endsWith('.port'))
  return JSON.stringify([kind, name, status, parentSpanId !== '', kept.sort()])
}

async function check(traffic: Traffic): Promise<void> {
  const bySock = await spansOf('sock', traffic)
  const bySyscalls = await spansOf('syscalls', traffic)
  assert.equal(bySyscalls.length, bySock.length)
  for (const [i, span] of bySock.entries()) assert.equal(bySyscalls[i], span)
}

const skip = withoutTracepoints

// Over kept ones: whom Node.js accepts a connection from has to be looked up, and one that has ended cannot be.
test('a Node.js server’s requests over kept connections are the same by both back ends', { skip }, () =>
  check({ start: startNodeShop, buyer: 'python', keepAlive: true }),
)

test('a Python server’s requests over kept connections are the same by both back ends', { skip }, () =>
  check({ start: startPythonShop, buyer: 'node', keepAlive: true }),
)

test('nginx’s requests, files by sendfile among them, are the same by both back ends', { skip }, () =>
  check({ start: startNginx, buyer: 'node', keepAlive: false }),
)

test('clients and servers that are older than the agent are followed by system calls as well', {
  skip,
}, async () => {
  const port = await freePort()
  const shop = await startPythonShop(port)
  const client = await Buyer.start('python', shop, plan(requests, shop), true)
  try {
    await client.open()
    const agent = await startAgent('syscalls', port)
    try {
      await client.go()
      await telemetry.arrived(2 * requests, port)
      await telemetry.settle(agent)
      assert.equal(telemetry.spans(port).length, 2 * requests)
      checkCounts(telemetry, shop, client)
    } finally {
      await agent.stop()
      telemetry.forget()
    }
  } finally {
    await client.close()
    await shop.close()
  }
})
