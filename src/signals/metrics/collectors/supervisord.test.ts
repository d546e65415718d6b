import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { parseXmlRpc } from './_xml-rpc.ts'
import { supervisord } from './supervisord.ts'

const int = (name: string, value: number) =>
  `<member>\n<name>${name}</name>\n<value><int>${value}</int></value>\n</member>`
const string = (name: string, value: string) =>
  `<member>\n<name>${name}</name>\n<value><string>${value}</string></value>\n</member>`
/** As supervisord 4.2 answers. */
const answer = (processes: string) =>
  `<?xml version='1.0'?>\n<methodResponse>\n<params>\n<param>\n<value><array><data>\n${processes}</data></array>` +
  '</value>\n</param>\n</params>\n</methodResponse>\n'
const running = `<value><struct>\n${string('name', 'web &lt;1&gt;')}${string('group', 'site')}${int('start', 1700000000)}${int('stop', 0)}${int('state', 20)}${string('statename', 'RUNNING')}${int('exitstatus', 0)}${string('spawnerr', '')}</struct></value>\n`
const dead = `<value><struct>${string('name', 'job')}${string('group', 'job')}${int('start', 1600000000)}${int('state', 100)}${int('exitstatus', 3)}</struct></value>`

type Handle = (request: IncomingMessage, response: ServerResponse) => void

async function serve(t: TestContext, handle: Handle, at: string | number = 0): Promise<number> {
  const server = createServer(handle)
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>(resolve =>
    typeof at === 'string' ? server.listen(at, resolve) : server.listen(at, '127.0.0.1', resolve),
  )
  return typeof at === 'string' ? 0 : (server.address() as AddressInfo).port
}

const lines = [
  'node_supervisord_exit_status{group="job",name="job"} 3',
  'node_supervisord_exit_status{group="site",name="web <1>"} 0',
  'node_supervisord_start_time_seconds{group="site",name="web <1>"} 1.7e+09',
  'node_supervisord_state{group="job",name="job"} 100',
  'node_supervisord_state{group="site",name="web <1>"} 20',
  'node_supervisord_up{group="job",name="job"} 0',
  'node_supervisord_up{group="site",name="web <1>"} 1',
]

test('processes are asked for over http and over a socket', async t => {
  const asked: string[] = []
  const handle: Handle = (request, response) => {
    let body = ''
    request.on('data', part => {
      body += part
    })
    request.on('end', () => {
      asked.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`)
      const isCall = body.includes('<methodName>supervisor.getAllProcessInfo</methodName>')
      response.end(isCall ? answer(running + dead) : 'not asked for')
    })
  }
  const port = await serve(t, handle)
  const socket = join(treeOf(t, {}), 'supervisor.sock')
  await serve(t, handle, socket)
  for (const url of [`http://me:pass@127.0.0.1:${port}/RPC2`, `unix://${socket}`]) {
    const read = await readWith(supervisord, { url })
    assert.equal(read.reason, '')
    assert.ok(read.lines.includes('# TYPE node_supervisord_start_time_seconds counter'))
    assert.deepEqual(
      read.lines.filter(line => !line.startsWith('#')),
      lines,
    )
  }
  assert.deepEqual(asked, [`POST /RPC2 Basic ${btoa('me:pass')}`, 'POST /RPC2 '])
})

test('no answer, another one and one that is too long fail, and tell no password', async t => {
  const check = async (handle: Handle, reason: RegExp) => {
    const port = await serve(t, handle)
    const read = await readWith(supervisord, { url: `http://me:secret@127.0.0.1:${port}/RPC2` })
    assert.equal(read.outcome, 'failed')
    assert.match(read.reason, reason)
    assert.doesNotMatch(read.reason, /secret/)
  }
  await check((_, response) => response.writeHead(401).end(), /status 401/)
  await check((_, response) => response.destroy(), /cannot query supervisord at http:\/\/\[REDACTED\]@127/)
  await check(
    (_, response) => response.end('x '.repeat(600_000)),
    /the response is larger than 1048576 bytes/,
  )
  await check((_, response) => response.end(answer('').slice(0, 90)), /invalid XML-RPC response/)
  await check((_, response) => response.end(answer(`<value>1</value>`)), /without properties/)
  await check((_, response) => response.end(answer('<value><struct></struct></value>')), /without group/)
  const { outcome } = await readWith(supervisord, { url: `unix://${join(treeOf(t, {}), 'none')}` })
  assert.equal(outcome, 'failed')
})

test('answers of XML-RPC are read strictly', () => {
  const check = (value: string, want: unknown) =>
    assert.deepEqual(
      parseXmlRpc(`<methodResponse><params><param><value>${value}</value></param></params></methodResponse>`),
      want,
    )
  check('plain &amp; simple', 'plain & simple')
  check('<string/>', '')
  check('<string>&#228;&#x1F600;&#99999999;&nope;</string>', 'ä😀&#99999999;&nope;')
  check('<i4>-12</i4>', -12)
  check('<boolean>1</boolean>', true)
  check('<double>2.5</double>', 2.5)
  check('<array><data/></array>', [])
  check('<struct><member><name>a</name><value>b</value></member></struct>', new Map([['a', 'b']]))
  for (const bad of [
    '<int>x</int>',
    '<int>1</int>2',
    '<nil/>',
    '<string>a',
    '<a b="c">1</a>',
    '<![CDATA[a]]>',
  ])
    assert.throws(() => check(bad, undefined), /^Error: invalid/)
  const deep = 20
  const nested = `${'<array><data><value>'.repeat(deep)}1${'</value></data></array>'.repeat(deep)}`
  assert.throws(() => check(nested, undefined), /nested too deeply/)
  const fault = `<methodResponse><fault><value><struct>${string('faultString', 'UNKNOWN_METHOD')}</struct></value></fault></methodResponse>`
  assert.throws(() => parseXmlRpc(fault), /fault response: UNKNOWN_METHOD/)
  for (const junk of ['', '<', '\0', ' '.repeat(1e6), '<value>'.repeat(150_000), '&'.repeat(1e6)])
    assert.throws(() => parseXmlRpc(junk), /invalid XML-RPC response/)
})
