import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, test } from 'node:test'
import { until } from '../../../../../test/helpers/program.ts'
import { isAtFault, ReportedTargets } from '../../../../../test/helpers/reported-targets.ts'
import { type Access, noAccess } from '../scrape-job.ts'
import type { TargetSource } from '../source.ts'
import { openSource } from './index.ts'

let server: Server
let told: ReportedTargets
let source: TargetSource
let answer: (request: IncomingMessage, response: ServerResponse) => void
let requests: IncomingMessage[]

beforeEach(async () => {
  requests = []
  server = createServer((request, response) => {
    requests.push(request)
    answer(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  told = new ReportedTargets()
})
afterEach(async () => {
  source.stop()
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

function start(path: string, more: Partial<Access> = {}, refreshMs = 100): string {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  source = openSource({ kind: 'http', url, refreshMs, access: { ...noAccess, ...more } }, told.options)
  source.start()
  return url
}

function json(value: unknown, type = 'application/json; charset=utf-8', status = 200) {
  return (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(status, { 'content-type': type })
    response.end(typeof value === 'string' ? value : JSON.stringify(value))
  }
}

test('a list is asked for as Prometheus does, again and again', async () => {
  answer = json([{ targets: ['a:1', 'a:2'], labels: { team: 'blue' } }, { targets: ['b:1'] }])
  const url = start('/sd?token=secret', { authorization: { type: 'Bearer', credentials: { text: 't' } } })
  await told.has('a:1,a:2,b:1', source)
  assert.deepEqual(told.targets[0], { __address__: 'a:1', __meta_url: url, team: 'blue' })
  assert.deepEqual(
    told.groups.map(group => group.source),
    [`${url}:0`, `${url}:1`],
  )
  const { headers } = requests[0]!
  assert.equal(headers.accept, 'application/json')
  assert.equal(headers['x-prometheus-refresh-interval-seconds'], '0.1')
  assert.equal(headers.authorization, 'Bearer t')
  answer = json([{ targets: ['b:1'] }])
  await told.has('b:1', source)
  const { times } = told
  const asked = requests.length
  await until('it was asked some times more', 20_000, () => requests.length > asked + 3)
  assert.equal(told.times, times, 'nothing is told where nothing changes')
  answer = json([])
  await told.has('', source)
  assert.equal(source.state.connected, true)
})

test('what is no list keeps the last targets, and has a reason without secrets', async () => {
  answer = json([{ targets: ['a:1'] }])
  start('/sd?token=secret')
  await told.has('a:1', source)
  const check = async (how: typeof answer, reason: RegExp) => {
    answer = how
    await isAtFault(source, reason)
    assert.doesNotMatch(source.state.reason, /secret/)
    assert.notEqual(source.state.hint, '')
    assert.equal(source.state.connected, false)
    assert.equal(told.addresses, 'a:1')
  }
  await check(json([], 'text/html'), /expected content type application\/json, got "text\/html"/)
  await check(json('[{"targets":['), /not JSON/)
  await check(json({ targets: ['a:1'] }), /not a list/)
  await check(json([{ targets: [1] }]), /target 1 of group 1 is not a string/)
  await check(json([null]), /group 1 is not an object/)
  await check(json([{ targets: ['a:1', 'unix:/run/docker.sock'] }]), /target 2 of group 1 is a Unix socket/)
  await check(json('', 'text/plain', 503), /HTTP 503/)
  await check(json(' '.repeat(16 * 1024 * 1024 + 1)), /16777216 bytes/)
  await check((_, response) => response.destroy(), /./)
  answer = json([{ targets: ['a:2'] }])
  await told.has('a:2', source)
  await until('it is well', 20_000, () => source.state.connected)
})

test('labels tell where a list came from, without the password', async () => {
  answer = json([{ targets: ['a:1'], labels: null }])
  const url = `http://user:secret@127.0.0.1:${(server.address() as AddressInfo).port}/sd?x=a@b`
  source = openSource({ kind: 'http', url, refreshMs: 100, access: noAccess }, told.options)
  source.start()
  await told.has('a:1', source)
  assert.equal(told.targets[0]!.__meta_url, url.replace('user:secret@', ''))
  assert.doesNotMatch(JSON.stringify(told.groups.map(({ source: name }) => name)), /secret/)
  assert.match(requests[0]!.headers.authorization!, /^Basic /)
})

test('a server that hangs is given up, and ends with the source', async () => {
  answer = json([{ targets: ['a:1'] }])
  start('/sd')
  await told.has('a:1', source)
  answer = (_, response) => response.write('[')
  await isAtFault(source, /1000 ms/)
  assert.equal(source.state.targets, 1)
  source.stop()
  let open = 1
  await until('no connection is open', 20_000, () => {
    server.getConnections((_, count) => {
      open = count
    })
    return open === 0
  })
})

test('a target allocator is asked for its jobs and for the targets of each', async () => {
  const jobs: Record<string, string[]> = {
    kubelet: ['10.0.0.1:10250'],
    'serviceMonitor/shop/cart/0': ['10.0.0.2:80'],
  }
  answer = (request, response) => {
    const url = new URL(request.url!, 'http://allocator')
    const job = /^\/jobs\/([^/]+)\/targets$/.exec(url.pathname)?.[1]
    if (url.pathname === '/jobs') {
      const links = Object.keys(jobs).map(name => [
        name,
        { _link: `/jobs/${encodeURIComponent(name)}/targets` },
      ])
      json(Object.fromEntries(links), 'application/json')(request, response)
      return
    }
    const targets = job && url.searchParams.get('collector_id') === 'svc-0' && jobs[decodeURIComponent(job)]
    if (targets) json([{ targets, labels: { __meta_x: 'y' } }], 'application/json')(request, response)
    else json('no such job', 'text/plain', 404)(request, response)
  }
  start('/jobs/{job}/targets?collector_id=svc-0')
  await told.has('10.0.0.1:10250,10.0.0.2:80', source)
  const target = told.at('10.0.0.2:80')!
  assert.equal(target.__meta_target_allocator_job, 'serviceMonitor/shop/cart/0')
  assert.equal(target.__meta_x, 'y')
  assert.match(target.__meta_url!, /\/jobs\/serviceMonitor%2Fshop%2Fcart%2F0\/targets\?collector_id=svc-0$/)
  delete jobs.kubelet
  await told.has('10.0.0.2:80', source)
  jobs.node = ['10.0.0.3:9100']
  await told.has('10.0.0.2:80,10.0.0.3:9100', source)
  answer = json('down', 'text/plain', 502)
  await isAtFault(source, /HTTP 502/)
  assert.equal(told.addresses, '10.0.0.2:80,10.0.0.3:9100')
})
