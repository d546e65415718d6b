import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createRawServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { pause, until } from '../../../../test/helpers/program.ts'
import { ReportedContainers } from '../../../../test/helpers/reported-containers.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { createLogger } from '../../../foundation/lib/logger.ts'
import { dockerContainer } from '../_docker-container.ts'
import { containerEvent } from './container-event.ts'
import { DockerSource, type DockerSourceOptions } from './docker-source.ts'

const idOf = (number: number) => number.toString(16).padStart(64, '0')

/** Answers as a test wants it to; left alone it is a daemon without containers. */
class FakeDaemon {
  version: (answer: ServerResponse) => void = answer => json(answer, { ApiVersion: '1.41', Version: '20.10' })
  list: (answer: ServerResponse) => void = answer =>
    json(
      answer,
      this.ids.map(Id => ({ Id })),
    )
  inspect: (answer: ServerResponse, id: string) => void = (answer, id) =>
    json(answer, { Id: id, Name: `/name-${id.slice(-4)}`, State: { Status: 'running', Pid: 7 }, Config: {} })
  events: (answer: ServerResponse) => void = answer => answer.flushHeaders()
  ids: string[] = []
  inspected: string[] = []
  streams: ServerResponse[] = []
  streamsBegun = 0

  answer(request: IncomingMessage, answer: ServerResponse): void {
    const path = request.url!.replace(/^\/v1\.\d+/, '')
    if (path === '/version') this.version(answer)
    else if (path === '/info') json(answer, { DockerRootDir: 7 })
    else if (path.startsWith('/events')) {
      this.streamsBegun++
      this.streams.push(answer)
      this.events(answer)
    } else if (path === '/containers/json?all=1') this.list(answer)
    else {
      const id = /^\/containers\/([0-9a-f]{64})\/json$/.exec(path)![1]!
      this.inspected.push(id)
      this.inspect(answer, id)
    }
  }

  tell(Action: string, id: string, Attributes: Record<string, unknown> = {}): void {
    const event = { Type: 'container', Action, Actor: { ID: id, Attributes } }
    this.streams.at(-1)!.write(`${JSON.stringify(event)}\n`)
  }
}

function json(answer: ServerResponse, value: unknown): void {
  answer.end(JSON.stringify(value))
}

interface Scene {
  readonly daemon: FakeDaemon
  readonly source: DockerSource
  readonly told: ReportedContainers
  readonly logged: string[]
}

function listen(t: TestContext, server: Server, name = 'docker.sock'): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'svc-fake-docker-'))
  const path = join(dir, name)
  mkdirSync(dirname(path), { recursive: true })
  t.after(() => {
    server.close()
    rmSync(dir, { recursive: true })
  })
  return new Promise(resolve => server.listen(path, () => resolve(path)))
}

async function scene(
  t: TestContext,
  prepare: (daemon: FakeDaemon) => void,
  options: Partial<DockerSourceOptions> = {},
  name = 'docker.sock',
): Promise<Scene> {
  const daemon = new FakeDaemon()
  prepare(daemon)
  const server = createServer((request, answer) => daemon.answer(request, answer))
  const endpoint = await listen(t, server, name)
  t.after(() => server.closeAllConnections())
  const rootfs = endpoint.slice(0, -name.length)
  return { daemon, ...follow(t, endpoint, { rootfs, ...options }) }
}

function follow(t: TestContext, endpoint: string, options: Partial<DockerSourceOptions> = {}) {
  const told = new ReportedContainers()
  const logged: string[] = []
  const log = createLogger({ level: 'warn', format: 'text', write: line => logged.push(line) })
  const source = new DockerSource({ endpoint, sink: told, log, env: {}, ...options })
  t.after(() => source.stop())
  source.start()
  return { source, told, logged }
}

async function fails(t: TestContext, prepare: (daemon: FakeDaemon) => void, reason: RegExp): Promise<Scene> {
  const found = await scene(t, prepare)
  await until(
    () => `there is a reason; ${JSON.stringify(found.source.state)}`,
    20_000,
    () => found.source.state.reason !== '',
  )
  assert.match(found.source.state.reason, reason)
  assert.notEqual(found.source.state.hint, '')
  assert.equal(found.source.state.connected, false)
  return found
}

test('who does not answer as Docker does is told with a reason, once', async t => {
  const cases: [(daemon: FakeDaemon) => void, RegExp][] = [
    [daemon => (daemon.version = answer => answer.end('<html>')), /not the Docker Engine API/],
    [daemon => (daemon.version = answer => json(answer, { ApiVersion: 41 })), /not the Docker Engine API/],
    [
      daemon => (daemon.version = answer => json(answer, { ApiVersion: '1.23' })),
      /Engine API 1\.23 .* 1\.24 or newer is required/,
    ],
    [
      daemon =>
        (daemon.version = answer => {
          answer.statusCode = 500
          json(answer, { message: 'no room' })
        }),
      /HTTP 500 to \/version: no room/,
    ],
    [daemon => (daemon.version = () => undefined), /no answer to \/version within 5000 ms/],
    [
      daemon => (daemon.version = answer => answer.end(Buffer.alloc(2 ** 21, 32))),
      /larger than 1048576 bytes/,
    ],
    [daemon => (daemon.version = answer => answer.destroy()), /was cut off|hang up/],
    [daemon => (daemon.events = answer => answer.writeHead(403).end()), /HTTP 403 to .*\/events/],
    [daemon => (daemon.list = answer => answer.end('{}')), /container list is not a JSON list/],
    [
      daemon =>
        (daemon.list = answer => {
          answer.writeHead(200, { 'content-length': '1000' }).write('[')
          setTimeout(() => answer.destroy(), 20)
        }),
      /was cut off/,
    ],
    [
      daemon =>
        (daemon.list = answer => {
          const more = () => answer.write(Buffer.alloc(2 ** 20, 32)) && setImmediate(more)
          answer.on('drain', more)
          more()
        }),
      /larger than 16777216 bytes/,
    ],
  ]
  await Promise.all(
    cases.map(async ([prepare, reason]) => {
      const { source, logged } = await fails(t, prepare, reason)
      await pause(600)
      source.stop()
      assert.equal(logged.length, 1, logged.join(''))
    }),
  )
})

test('who does not speak HTTP is told as such', async t => {
  const server = createRawServer(socket => socket.end('* OK IMAP4rev1\r\n'))
  const { source } = follow(t, await listen(t, server))
  await until('there is a reason', 20_000, () => source.state.reason !== '')
  assert.match(source.state.reason, /does not speak HTTP/)
})

test('a socket that is not there is a reason, and one that somebody left behind too', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-fake-docker-'))
  t.after(() => rmSync(dir, { recursive: true }))
  writeFileSync(join(dir, 'file'), '')
  const state = (endpoint: string, rootfs = dir) => {
    const { source, logged } = follow(t, endpoint, { rootfs })
    const { reason, hint } = source.state
    source.stop()
    return { reason, hint, warned: logged.length }
  }
  assert.deepEqual(state(join(dir, 'file')), {
    reason: `socket ${dir}/file from agent.discovery.docker.endpoint not found`,
    hint: 'start Docker or Podman, or correct agent.discovery.docker.endpoint',
    warned: 1,
  })
  assert.deepEqual(state(''), { reason: 'no Docker or Podman socket found', hint: '', warned: 0 })
})

test('an address that svc cannot ask is told with its name and what to write, beside who answers', async t => {
  const { source, told, logged } = await scene(
    t,
    daemon => {
      daemon.ids = [idOf(1)]
    },
    { endpoint: '', env: { DOCKER_HOST: 'ssh://root:secret@far' } },
    'run/docker.sock',
  )
  await until('it is told', 20_000, () => told.present.size === 1)
  const { connected, reason, hint } = source.state
  assert.equal(connected, true)
  assert.equal(reason, 'DOCKER_HOST is ssh://[REDACTED]@far: svc does not support ssh')
  assert.match(
    hint,
    /^set DOCKER_HOST to unix:\/\/\/run\/svc\/far\.sock, and forward the socket there: ssh -N -L /,
  )
  assert.equal(logged.length, 1)
  assert.match(logged[0]!, /the configured endpoint is not available/)
  source.stop()
  const { source: other } = follow(t, 'npipe:////./pipe/docker_engine')
  assert.match(
    other.state.reason,
    /^agent\.discovery\.docker\.endpoint is npipe:\S+: npipe exists only on Windows$/,
  )
})

test('a daemon at a port is followed, and its words about files of this host are not believed', async t => {
  const daemon = new FakeDaemon()
  daemon.ids = [idOf(1)]
  const paths: string[] = []
  daemon.inspect = (answer, id) =>
    json(answer, {
      Id: id,
      Name: '/web',
      LogPath: '/etc/shadow',
      HostConfig: { LogConfig: { Type: 'json-file' } },
    })
  const server = createServer((request, answer) => {
    paths.push(request.url!)
    daemon.answer(request, answer)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const env = { DOCKER_HOST: `tcp://127.0.0.1:${port}` }
  const { source, told } = follow(t, '', { env, rootfs: '/nonexistent' })
  await until('it is told', 20_000, () => told.present.size === 1)
  assert.equal(told.present.get(idOf(1))!.logPath, '')
  assert.equal(source.state.endpoint, `http://127.0.0.1:${port}`)
  assert.ok(!paths.some(path => path.endsWith('/info')))
})

test('a daemon at a port that refuses, or that is meant and silent while another answers, has a reason', async t => {
  const closed = createRawServer()
  await new Promise<void>(resolve => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as AddressInfo
  await new Promise(resolve => closed.close(resolve))
  const env = { DOCKER_HOST: `tcp://127.0.0.1:${port}` }
  const alone = follow(t, '', { env, rootfs: '/nonexistent' })
  await until('there is a reason', 20_000, () => alone.source.state.reason !== '')
  assert.equal(alone.source.state.reason, `nothing listens on http://127.0.0.1:${port} (ECONNREFUSED)`)
  assert.match(alone.source.state.hint, /DOCKER_HOST/)
  alone.source.stop()
  const beside = await scene(t, () => undefined, { endpoint: '', env }, 'run/docker.sock')
  await until('the other answers', 20_000, () => beside.source.state.connected)
  assert.match(beside.source.state.reason, /^nothing listens on http:/)
  assert.notEqual(beside.source.state.hint, '')
})

test('a daemon that comes later is found, and one that goes is found again', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-fake-docker-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const path = join(dir, 'docker.sock')
  const { source, told } = follow(t, path)
  assert.equal(source.state.connected, false)
  const daemon = new FakeDaemon()
  daemon.ids = [idOf(1), idOf(2)]
  const start = async () => {
    const server = createServer((request, answer) => daemon.answer(request, answer))
    await new Promise<void>(resolve => server.listen(path, resolve))
    return async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    }
  }
  const end = await start()
  await until('both are told', 20_000, () => told.present.size === 2)
  await end()
  await until('the loss is known', 20_000, () => !source.state.connected && source.state.hint !== '')
  assert.equal(told.present.size, 2)
  daemon.ids = [idOf(2), idOf(3)]
  const endAgain = await start()
  await until('the third is told', 20_000, () => told.present.has(idOf(3)))
  assert.deepEqual([...told.present.keys()].sort(), [idOf(2), idOf(3)])
  assert.equal(told.times, 3, 'what did not change is not told again')
  source.stop()
  await endAgain()
})

test('asks for four containers at once at most, and for each once', async t => {
  let open = 0
  let most = 0
  const { daemon, told } = await scene(t, daemon => {
    daemon.ids = Array.from({ length: 60 }, (_, number) => idOf(number))
    const answerNow = daemon.inspect
    const held: (() => void)[] = []
    daemon.inspect = (answer, id) => {
      most = Math.max(most, ++open)
      held.push(() => {
        open--
        answerNow(answer, id)
      })
      if (most >= 4) for (const go of held.splice(0)) setTimeout(go, 2)
    }
  })
  await until('all are told', 20_000, () => told.present.size === 60)
  assert.equal(most, 4)
  assert.equal(daemon.inspected.length, 60)
})

test('many events of one container are one or two questions', async t => {
  const { daemon, told } = await scene(t, daemon => {
    daemon.ids = [idOf(1)]
  })
  await until('it is told', 20_000, () => told.present.size === 1)
  const answers: (() => void)[] = []
  const answerNow = daemon.inspect
  daemon.inspect = (answer, id) => answers.push(() => answerNow(answer, id))
  const before = daemon.inspected.length
  for (let i = 0; i < 1000; i++) daemon.tell('rename', idOf(1))
  await until('it is asked for', 20_000, () => answers.length === 1)
  daemon.tell('exec_start: true', idOf(1))
  daemon.tell('create', idOf(2))
  await until('all events were heard', 20_000, () => answers.length === 2)
  for (const answer of answers.splice(0)) answer()
  await until('it is asked for again', 20_000, () => answers.length === 1)
  for (const answer of answers.splice(0)) answer()
  await pause(50)
  assert.equal(daemon.inspected.length - before, 3)
})

test('a container that goes while it is asked for does not come back', async t => {
  const { daemon, told } = await scene(t, () => undefined)
  const answers: (() => void)[] = []
  const answerNow = daemon.inspect
  daemon.inspect = (answer, id) => answers.push(() => answerNow(answer, id))
  await until('it is connected', 20_000, () => daemon.streams.length === 1)
  daemon.tell('create', idOf(1), { name: 'short', image: 'shop:1.2', team: 'a', exitCode: '0' })
  await until('it is asked for', 20_000, () => answers.length === 1)
  daemon.tell('destroy', idOf(1), { name: 'short', image: 'shop:1.2', team: 'a' })
  await until('it was told of, by its events', 20_000, () => told.last.has(idOf(1)))
  answers[0]!()
  await pause(100)
  assert.equal(told.present.size, 0)
  const { name, image, labels } = told.last.get(idOf(1))!
  assert.deepEqual(
    { name, image, labels },
    { name: 'short', image: 'shop:1.2', labels: new Map([['team', 'a']]) },
  )
})

test('a container that is gone when it is asked for is told of by its event', async t => {
  const { daemon, told } = await scene(t, daemon => {
    daemon.inspect = answer => answer.writeHead(404).end('{"message":"No such container"}')
  })
  await until('it is connected', 20_000, () => daemon.streams.length === 1)
  daemon.tell('start', idOf(1), { name: 'short', image: 'shop:1.2' })
  await until('it was told of', 20_000, () => told.last.get(idOf(1))?.name === 'short')
  assert.equal(told.present.size, 0)
})

test('one container that cannot be read keeps no other, and is read as soon as it can be', async t => {
  const ill = { is: true }
  const { source, told, daemon } = await scene(
    t,
    daemon => {
      daemon.ids = [1, 2, 3, 4, 5, 6].map(idOf)
      const answerNow = daemon.inspect
      daemon.inspect = (answer, id) => {
        if (id === idOf(1) && ill.is) answer.writeHead(500).end('{"message":"locked"}')
        else if (id === idOf(2) && ill.is) answer.end('[]')
        else if (id !== idOf(3) || !ill.is) answerNow(answer, id)
      }
    },
    { refreshMs: 100 },
  )
  await until('the others are told', 20_000, () => told.present.size === 3)
  await until('there is a reason', 20_000, () => source.state.reason !== '')
  assert.match(
    source.state.reason,
    /^cannot read container 000000000000: (HTTP 500 .*: locked|the container description is not a JSON object)$/,
  )
  assert.equal(source.state.connected, true)
  ill.is = false
  // The third is still waited for.
  await until('those that were refused are told', 20_000, () => told.present.size === 5)
  await until('the reason is gone', 20_000, () => source.state.reason === '')
  daemon.ids = []
  await until('the list alone tells that all are gone', 20_000, () => told.present.size === 0)
})

test('a line without an end costs bounded memory, and the events after it are heard', async t => {
  const { daemon, told } = await scene(
    t,
    daemon => {
      daemon.ids = [idOf(1)]
    },
    { refreshMs: 300 },
  )
  await until('it is told', 20_000, () => told.present.size === 1)
  const [stream] = daemon.streams
  const chunk = Buffer.alloc(2 ** 20, 0x61)
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  for (let i = 0; i < (soak ? 1024 : 192); i++) {
    await new Promise<void>(resolve => stream!.write(chunk, () => resolve()))
    most = Math.max(most, process.memoryUsage().arrayBuffers)
  }
  assert.ok(most - before < 128 * 2 ** 20, `${most - before} bytes`)
  const asked = daemon.inspected.length
  stream!.write('\nnot json\n{"Type":"container"}\n[]\nnull\n{"Type":"container","Action":{},"Actor":[]}\n')
  daemon.ids = [idOf(1), idOf(2)]
  daemon.tell('create', idOf(2))
  await until('the second is told', 20_000, () => told.present.size === 2)
  await until('what was missed is asked for', 20_000, () => daemon.inspected.length >= asked + 3)
})

test('streams of events that end at once are not asked for without end', async t => {
  const { daemon, source, logged } = await scene(t, daemon => {
    daemon.events = answer => answer.end()
  })
  await until('three were begun', 20_000, () => daemon.streamsBegun >= 3)
  const begun = daemon.streamsBegun
  await pause(1000)
  assert.ok(daemon.streamsBegun - begun <= 3, `${daemon.streamsBegun - begun} in a second`)
  assert.match(source.state.reason, /event stream/)
  assert.equal(logged.length, 1)
})

test('after the stop nothing is asked, and nothing is left open', async t => {
  const { daemon, source, told } = await scene(t, daemon => {
    daemon.ids = [idOf(1), idOf(2)]
    const answerNow = daemon.inspect
    daemon.inspect = (answer, id) => (id === idOf(1) ? answerNow(answer, id) : undefined)
  })
  await until(
    'one is told, and one is asked for',
    20_000,
    () => told.present.size === 1 && daemon.inspected.length === 2,
  )
  const closed = new Promise(resolve => daemon.streams[0]!.once('close', resolve))
  source.stop()
  await closed
  const { streamsBegun } = daemon
  await pause(500)
  assert.equal(daemon.streamsBegun, streamsBegun)
  assert.equal(source.state.connected, false)
})

test('whatever a description or an event holds, every text is a text', () => {
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom('sha256:', '/x', 'io.kubernetes.pod.uid'))
  const state = fc.oneof(
    value,
    fc.record(
      {
        Status: value,
        Pid: value,
        Health: fc.oneof(value, fc.record({ Status: value })),
        Running: value,
        StartedAt: value,
      },
      { requiredKeys: [] },
    ),
  )
  const config = fc.oneof(
    value,
    fc.record(
      { Image: value, Labels: fc.oneof(value, fc.dictionary(fc.string(), value)) },
      { requiredKeys: [] },
    ),
  )
  const description = fc.record(
    { Name: value, Image: value, State: state, Config: config },
    { requiredKeys: [] },
  )
  const isText = (text: unknown) => assert.equal(typeof text, 'string')
  fc.assert(
    fc.property(description, value, value, (told, action, attributes) => {
      const { labels, pid, ...texts } = dockerContainer(idOf(1), 'docker', told, '')
      Object.values(texts).forEach(isText)
      for (const pair of labels) pair.forEach(isText)
      assert.ok(Number.isSafeInteger(pid) && pid >= 0)
      const event = { Type: 'container', Action: action, Actor: { ID: idOf(1), Attributes: attributes } }
      containerEvent(Buffer.from(JSON.stringify(event)), 'docker')
      containerEvent(Buffer.from(JSON.stringify({ ...event, Action: 'create' })), 'docker')
    }),
    { numRuns: soak ? 20_000 : 500 },
  )
})
