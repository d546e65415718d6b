// owns: host
// The commands that look at a running agent, over a real one that looks at a real server under load.

import assert from 'node:assert/strict'
import { createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutTmux } from '../helpers/host-needs.ts'
import { freePort, until } from '../helpers/program.ts'
import { svcProgram } from '../helpers/program-under-test.ts'
import { svc } from '../helpers/svc.ts'
import { Tmux } from '../helpers/tmux.ts'

/** Two cores run the agent, the load and the command. */
const patienceMs = 60_000

let server: Server
let port: number
let agent: AgentProcess
let load: NodeJS.Timeout

before(async () => {
  server = createServer((request, response) => {
    response.statusCode = request.url === '/broken' ? 500 : 200
    response.end('fine')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
  agent = await AgentProcess.start({
    ports: [port],
    env: { SVC_AGENT_NODEEXPORTER_LISTEN_ADDRESS: `127.0.0.1:${await freePort()}` },
  })
  let count = 0
  load = setInterval(() => {
    const path = ++count % 5 === 0 ? '/broken' : '/cart/7'
    get({ host: '127.0.0.1', port, path, agent: false }, response => response.resume()).on(
      'error',
      () => undefined,
    )
  }, 50)
})
after(async () => {
  clearInterval(load)
  await agent?.stop()
  server?.closeAllConnections()
  server?.close()
})

const of = (...args: string[]) => svc([...args, '--config', agent.file])

test('top shows the service that is asked', { skip: withoutTmux }, async t => {
  const tmux = new Tmux(`${process.execPath} ${svcProgram} top --config ${agent.file}; echo "ended with $?"`)
  t.after(() => tmux.end())
  await tmux.shows(/^[> ]\S.* http +\d+\.\d .*▲/m, patienceMs)
  await tmux.shows(/^ \S+ {2}cpu \d+% {2}mem \S+ .*svc \S+% cpu \d+M {2}drops 0$/m, patienceMs)
  tmux.press('Enter')
  await tmux.shows(/GET \/cart\/\S+ +\d+/, patienceMs)
  tmux.press('p')
  await tmux.shows(/ traces +\d+\.\d/, patienceMs)
  tmux.press('q')
  await tmux.shows(/ended with 0/)
})

test('tap shows spans as they come, as text and as OTLP', async () => {
  const failed = await of('tap', 'traces', '--errors', '-n', '2')
  assert.deepEqual([failed.code, failed.out.split('\n').length], [0, 3], failed.talk)
  assert.match(failed.out, /^\d\d:\d\d:\d\d\.\d{3} \S+ +\S+ ! .*\n/)
  const { code, out, talk } = await of('tap', 'traces', '-n', '1', '--json')
  assert.equal(code, 0, talk)
  const [{ scopeSpans }] = JSON.parse(out).resourceSpans
  assert.match(scopeSpans[0].spans[0].traceId, /^[0-9a-f]{32}$/)
})

test('explain tells that the port is observed, and that another is not there', async () => {
  const { code, out, talk } = await of('explain', String(port))
  assert.equal(code, 0, out + talk)
  assert.match(out, new RegExp(`^port ${port} -> pid ${process.pid} `))
  const none = await of('explain', 'no-such-thing-at-all')
  assert.equal(none.code, 1)
  assert.match(none.out, /^Nothing found for no-such-thing-at-all\.\n/)
})

test('status and config are those of the agent', async () => {
  const { code, out, talk } = await of('status')
  assert.equal(code, 0, out + talk)
  assert.match(out, /, mode agent, up \S+, ready\n/)
  assert.ok(out.includes(`Page: http://127.0.0.1:${agent.port}/ui\n`), out)
  let config = await of('config', '--diff')
  // An agent that does not answer for three seconds is asked at its next address.
  await until(
    () => `it answers at its admin socket: ${config.talk}`,
    patienceMs,
    async () => {
      if (/^from the agent at unix:/.test(config.talk)) return true
      config = await of('config', '--diff')
      return false
    },
  )
  assert.match(
    config.out,
    new RegExp(`^  listen: 127\\.0\\.0\\.1:${agent.port}  # .*; default: ":19090"$`, 'm'),
  )
})
