import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { open, settings } from '../../../test/helpers/api-server.ts'
import { shopAndWorker, taken } from '../../../test/helpers/host-profile.ts'
import { call, type Reply } from '../../../test/helpers/http.ts'
import { Api as Description } from '../../../test/helpers/openapi.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import type { ProfileRefusal, ProfileRequest, TakenProfile } from '../../foundation/model/taken-profile.ts'
import { peerUser } from '../../kernel/peer-user.ts'
import { profileFile } from '../../signals/profiles/profile-file.ts'
import { openapi } from './openapi.ts'
import { operations } from './routes.ts'
import { startApi } from './server.ts'
import type { AgentView } from './types.ts'

const log = createLogger({ level: 'error', format: 'json', write: () => undefined })

type Take = (request: ProfileRequest) => Promise<TakenProfile | ProfileRefusal>

/** The API of an agent that records by `takeProfile`. */
async function serve(t: TestContext, takeProfile: Take) {
  const view = { profiles: [], pages: [], takeProfile, profileFile } as unknown as AgentView
  const all = operations(view, '/metrics')
  const api = await startApi({ settings, operations: all, log, peerUser })
  t.after(() => api.close())
  const description = new Description(JSON.parse(JSON.stringify(openapi(all))))
  const operation = description.operations().find(({ path }) => path === '/profiles')!.operation
  const get = async (query: string): Promise<Reply> => {
    const reply = await call(api.port, `/profiles${query}`)
    description.check(operation, reply)
    return reply
  }
  return { get, port: api.port }
}

test('a recording is asked for as the query says, and answered in the format that it names', async t => {
  const asked: ProfileRequest[] = []
  const { get } = await serve(t, async request => {
    asked.push(request)
    return shopAndWorker()
  })
  const check = async (query: string, want: Partial<ProfileRequest>, type: string) => {
    const reply = await get(query)
    assert.equal(reply.status, 200, reply.body.toString())
    const { signal: _, ...rest } = asked.at(-1)!
    assert.deepEqual(rest, want)
    assert.equal(reply.headers['content-type'], type)
    return reply
  }
  const binary = 'application/octet-stream'
  const pprof = await check('', { kind: 'cpu', seconds: 10 }, binary)
  assert.equal(pprof.headers['content-disposition'], 'attachment; filename="cpu.pb.gz"')
  await check('?seconds=1&pid=12&rate=997', { kind: 'cpu', seconds: 1, pid: 12, rate: 997 }, binary)
  const json = await check(
    '?kind=off_cpu&seconds=60&service=a%20b%26c&format=json',
    { kind: 'off_cpu', seconds: 60, service: 'a b&c' },
    'application/json',
  )
  assert.equal(JSON.parse(json.body.toString()).title, 'a b&c')
  const folded = await check(
    '?kind=memory&format=folded',
    { kind: 'memory', seconds: 10 },
    'text/plain; charset=utf-8',
  )
  assert.match(folded.body.toString(), /^shop;main;serve \d+$/m)
  const svg = await check('?format=svg', { kind: 'cpu', seconds: 10 }, 'image/svg+xml')
  assert.match(
    svg.headers['content-security-policy'] as string,
    /^default-src 'none';.* sandbox allow-scripts/,
  )
})

test('the file for pprof is gzip, and one of nothing is a success', async t => {
  const { get } = await serve(t, async () => taken([]))
  assert.ok(gunzipSync((await get('?seconds=1')).body).length > 0)
  assert.equal((await get('?format=folded')).body.toString(), '')
})

test('what is wrong with the query is refused before anything is recorded', async t => {
  const { get } = await serve(t, () => assert.fail('it was asked'))
  const check = async (query: string, message: RegExp) => {
    const reply = await get(query)
    assert.equal(reply.status, 400)
    assert.match(JSON.parse(reply.body.toString()).message, message)
  }
  await check('?seconds=61', /"seconds" must be a whole number from 1 to 60/)
  await check('?rate=1000', /"rate" must be a whole number from 0 to 999/)
  await check('?kind=wall', /"kind" must be one of cpu, memory, off_cpu$/)
  await check('?format=html', /"format" must be one of pprof, folded, svg, json$/)
  await check(`?service=${'x'.repeat(256)}`, /"service" must have at most 255 characters/)
  await check('?service=a&service=b', /"service" is given twice/)
  await check('?sevice=a', /unknown parameter "sevice"; did you mean service\?/)
  await check('?pid=1&service=a', /use pid or service, not both/)
})

test('why there is no recording is told with what fixes it', async t => {
  let refusal: ProfileRefusal
  const { get } = await serve(t, async () => refusal)
  const check = async (cause: ProfileRefusal['cause'], status: number, services?: string[]) => {
    refusal = { refused: `it is ${cause}`, hint: 'do this', cause, ...(services && { services }) }
    const reply = await get('?service=shp')
    assert.equal(reply.status, status)
    const { message, details } = JSON.parse(reply.body.toString())
    assert.deepEqual(
      [message, details],
      [`it is ${cause}`, { hint: 'do this', ...(services && { services }) }],
    )
  }
  await check('no_target', 404, ['shop', 'worker'])
  await check('busy', 409)
  await check('off', 503)
})

test('a client that goes ends the recording', async t => {
  let begun = (_: AbortSignal) => undefined as unknown
  const signal = new Promise<AbortSignal>(resolve => {
    begun = resolve
  })
  const { port } = await serve(t, async request => {
    begun(request.signal)
    await once(request.signal, 'abort')
    throw request.signal.reason
  })
  const socket = await open(port)
  socket.write('GET /profiles?seconds=60 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const aborted = await signal
  const gone = once(aborted, 'abort')
  socket.destroy()
  await gone
  assert.ok(aborted.aborted)
})

test('without a token a recording is for this host, and for no web page of another origin', async t => {
  const { port } = await serve(t, () => assert.fail('it was asked'))
  for (const headers of [{ Origin: 'https://evil.example' }, { Host: 'evil.example' }])
    assert.equal((await call(port, '/profiles?seconds=1', { headers: { ...headers } as never })).status, 403)
})
