import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { NetworkNamespace, withoutNamespaces } from '../../../../../test/helpers/network-namespace.ts'

/** Of two places: what asking the first comes to, which redirects to the second. */
const script = `
  const { once } = await import('node:events')
  const { createServer } = await import('node:http')
  const { TargetClient } = await import(${JSON.stringify(join(import.meta.dirname, 'target-client.ts'))})
  let to = ''
  const asked = []
  const server = createServer((request, response) => {
    asked.push(request.url)
    if (request.url === '/metrics') response.writeHead(302, { Location: to }).end()
    else if (request.url === '/refused') response.writeHead(500, { 'Content-Type': 'text/plain' }).end('inner secret')
    else response.end('a 1\\n')
  })
  server.listen(0, '0.0.0.0')
  await once(server, 'listening')
  const { port } = server.address()
  const access = {
    headers: {}, basic: undefined, authorization: undefined, followRedirects: true, proxyUrl: '',
    tls: { caFile: '', certFile: '', keyFile: '', serverName: '', insecureSkipVerify: false },
  }
  const told = []
  for (const [from, where] of JSON.parse(process.env.PLACES)) {
    asked.length = 0
    to = 'http://' + where.replace(/(?=\\/)/, ':' + port)
    const url = 'http://' + from + ':' + port + '/metrics'
    const client = new TargetClient({ url, access, compression: 'never', bodyBytes: 1e6, owner: 'job x' })
    told.push(await client.ask({ timeoutMs: 20_000 }).then(
      ({ release }) => (release(), 'page'),
      ({ type, message }) => type + ': ' + message,
    ) + ' ' + asked.length)
    client.close()
  }
  server.close()
  console.log(JSON.stringify(told))`

test('a server elsewhere cannot send us to ourselves or to the secrets of a cloud', {
  skip: withoutNamespaces,
}, t => {
  // Addresses that are answered here and look to a client as those of another machine.
  const host = new NetworkNamespace(t, [
    'link set lo up',
    'addr add 10.7.0.1/32 dev lo',
    'route add local 10.8.0.0/24 dev lo src 10.7.0.1',
    'route add local 169.254.0.0/16 dev lo src 10.7.0.1',
  ])
  const check = (from: string, to: string, want: RegExp): void => {
    const [told] = host.run(
      `process.env.PLACES = ${JSON.stringify(JSON.stringify([[from, to]]))}; ${script}`,
    ) as string[]
    assert.match(told!, want)
  }
  const refused =
    /^redirect: cannot fetch http:\/\/.*a remote target redirects job x to an address of this host.* 1$/
  check('10.8.0.9', '127.0.0.1/page', refused)
  check('10.8.0.9', 'localhost/page', refused)
  check('10.8.0.9', '[::ffff:127.0.0.1]/page', refused)
  check('10.8.0.9', '0.0.0.0/page', refused)
  check('10.8.0.9', '169.254.169.254/page', refused)
  check('10.8.0.9', '10.8.0.10/page', /^page 2$/)
  check('10.7.0.1', '127.0.0.1/page', /^page 2$/)
  check('127.0.0.1', '169.254.169.254/page', /^page 2$/)
  // What it says there is not told to those who read our faults.
  check(
    '10.8.0.9',
    '10.8.0.10/refused',
    /^http_status: (?!.*inner secret).*HTTP 500 Internal Server Error 2$/,
  )
})
