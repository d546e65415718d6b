import assert from 'node:assert/strict'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import { ask, serve, settings } from '../../../test/helpers/api-server.ts'
import { until } from '../../../test/helpers/program.ts'
import { goingOn } from './answer.ts'
import { linesOf, linesType } from './follow.ts'
import type { Operation } from './operation.ts'
import type { Live } from './ui/source.ts'

/** Counts up, a line a look. */
class Counter implements Live<{ readonly n: number; readonly fill: string }> {
  readonly everyMs = 1
  readonly fill: string
  n = 0
  closed = 0
  failsAt = Number.POSITIVE_INFINITY

  constructor(fill = '') {
    this.fill = fill
  }

  next() {
    if (this.n >= this.failsAt) throw new Error('it cannot be read')
    return [{ n: this.n++, fill: this.fill }]
  }

  close() {
    this.closed++
  }
}

function following(make: () => Live<unknown>, access: Operation['access'] = 'public'): Operation {
  return {
    method: 'GET',
    path: '/count',
    id: 'count',
    tag: 'ui',
    summary: '',
    access,
    outcomes: {},
    handle: async () => {
      const live = make()
      return goingOn(linesType, Buffer.from(linesOf(await live.next())), live)
    },
  }
}

function open(port: number, headers = {}): Promise<{ sent: ClientRequest; response: IncomingMessage }> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path: '/count', headers, agent: false })
    sent.on('error', reject)
    sent.on('response', response => resolve({ sent, response }))
    sent.end()
  })
}

test('lines come until the client goes, and then nobody looks any longer', async t => {
  const live = new Counter()
  const { api } = await serve(t, {}, { operations: [following(() => live)] })
  const { sent, response } = await open(api.port)
  assert.equal(response.headers['content-type'], linesType)
  assert.equal(response.headers['content-length'], undefined)
  let text = ''
  response.on('error', () => undefined)
  response.on('data', chunk => {
    text += chunk
  })
  await until('lines came', 20_000, () => text.split('\n').length > 20)
  const lines = text.split('\n').slice(0, 20)
  assert.deepEqual(
    lines.map(line => JSON.parse(line).n),
    lines.map((_, i) => i),
  )
  sent.destroy()
  await until('it is closed', 20_000, () => live.closed === 1)
  const { n } = live
  await new Promise(resolve => setTimeout(resolve, 50))
  assert.equal(live.n, n)
})

test('a client that does not read is not written to, and costs no memory', async t => {
  const live = new Counter('x'.repeat(256 * 1024))
  const { api } = await serve(t, {}, { operations: [following(() => live)] })
  const { sent, response } = await open(api.port)
  response.on('error', () => undefined)
  response.pause()
  let before = -1
  await until('nothing is written', 20_000, async () => {
    const still = live.n === before
    before = live.n
    await new Promise(resolve => setTimeout(resolve, 100))
    return still
  })
  // What sockets hold on their way, of both sides.
  assert.ok(live.n < 100, `${live.n} lines of 256 KiB`)
  sent.destroy()
  await until('it is closed', 20_000, () => live.closed === 1)
})

test('a document that fails ends its answer and no other', async t => {
  const made: Counter[] = []
  const { api } = await serve(
    t,
    {},
    {
      operations: [
        following(() => {
          const live = new Counter()
          if (made.length === 0) live.failsAt = 5
          made.push(live)
          return live
        }),
      ],
    },
  )
  const first = await open(api.port)
  const second = await open(api.port)
  second.response.on('error', () => undefined).resume()
  const chunks: Buffer[] = []
  for await (const chunk of first.response) chunks.push(chunk as Buffer)
  assert.equal(Buffer.concat(chunks).toString().trim().split('\n').length, 5)
  assert.equal(made[0]!.closed, 1)
  const { n } = made[1]!
  await until('the other goes on', 20_000, () => made[1]!.n > n + 5)
  second.sent.destroy()
})

test('so many go on at once and no more, and they end with the server', async t => {
  const made: Counter[] = []
  const server = await serve(
    t,
    {},
    {
      operations: [
        following(() => {
          const live = new Counter()
          made.push(live)
          return live
        }),
      ],
    },
  )
  const { api } = server
  for (let i = 0; i < 32; i++) (await open(api.port)).response.on('error', () => undefined).resume()
  const reply = await ask(api.port, '/count')
  assert.equal(reply.status, 503)
  assert.match(reply.text, /too many open streams/)
  assert.equal(made[32]!.closed, 1)
  await api.close()
  assert.deepEqual(new Set(made.map(({ closed }) => closed)), new Set([1]))
})

test('what goes on ends when the settings would no longer let it begin, and goes on where they do', async t => {
  const made: Counter[] = []
  const make = () => {
    const live = new Counter()
    made.push(live)
    return live
  }
  const { api } = await serve(t, {}, { operations: [following(make, 'private')] })
  const bare = await open(api.port)
  const shown = await open(api.port, { Authorization: 'Bearer right' })
  shown.response.on('error', () => undefined).resume()
  const auth = { ...settings.auth, enabled: true, bearer_token: 'right' }
  let text = ''
  bare.response.setEncoding('utf8').on('data', part => {
    text += part
  })
  await until('both go on', 20_000, () => made.every(({ n }) => n > 5))
  api.prepare({ ...settings, auth }).commit()
  const last = made[0]!.n
  await until('it has ended', 20_000, () => bare.response.readableEnded)
  assert.ok(text.endsWith('\n'))
  assert.ok(text.trim().split('\n').length <= last, 'nothing was told after it')
  assert.equal((await ask(api.port, '/count')).status, 401)
  const { n } = made[1]!
  await until('who has the token reads on', 20_000, () => made[1]!.n > n + 5)
  api.prepare({ ...settings, auth: { ...auth, bearer_token: 'other' } }).commit()
  await until('the token is withdrawn', 20_000, () => made[1]!.closed === 1)
})

test('a client that reads nothing for long loses its place, and one that is told nothing keeps it', async t => {
  const filler = new Counter('x'.repeat(256 * 1024))
  let looks = 0
  let closed = 0
  const quiet: Live<never> = {
    everyMs: 20,
    next: () => {
      looks++
      return []
    },
    close: () => {
      closed++
    },
  }
  const turns: Live<unknown>[] = [filler, quiet]
  // Silence is what takes twice as long as a request may.
  const { api } = await serve(
    t,
    {},
    { operations: [following(() => turns.shift()!)], limits: { headersMs: 2500, requestMs: 2500 } },
  )
  const unread = await open(api.port)
  unread.response.on('error', () => undefined).pause()
  const sent = request({ port: api.port, host: '127.0.0.1', path: '/count', agent: false })
  sent.on('error', () => undefined).end()
  await until('it lost its place', 60_000, () => filler.closed === 1)
  const before = looks
  await until('the other is asked on', 20_000, () => looks > before + 30)
  assert.equal(closed, 0)
  sent.destroy()
  await until('it is closed', 20_000, () => closed === 1)
})
