// owns: process
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttp1 } from 'node:http'
import { createServer as createRaw, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { answer, FakeContainerd, framed, listed, refuse } from '../../../../test/helpers/fake-containerd.ts'
import { pause, until } from '../../../../test/helpers/program.ts'
import { message } from '../../../../test/helpers/protobuf-message.ts'
import { ReportedContainers } from '../../../../test/helpers/reported-containers.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { createLogger } from '../../../foundation/lib/logger.ts'
import { ContainerdSource, type ContainerdSourceOptions } from './containerd-source.ts'
import {
  noTask,
  readContainer,
  readEvent,
  readListedId,
  readNamespaces,
  readTask,
  readVersion,
} from './messages.ts'

const idOf = (number: number) => number.toString(16).padStart(64, '0')
const head = { ':status': 200, 'content-type': 'application/grpc' }

function follow(t: TestContext, options: Partial<ContainerdSourceOptions>) {
  const told = new ReportedContainers()
  const logged: string[] = []
  const log = createLogger({ level: 'warn', format: 'text', write: line => logged.push(line) })
  const source = new ContainerdSource({ socketPath: '', isBeside: () => false, sink: told, log, ...options })
  t.after(() => source.stop())
  source.start()
  return { source, told, logged }
}

async function scene(
  t: TestContext,
  prepare: (daemon: FakeContainerd) => void,
  options: Partial<ContainerdSourceOptions> = {},
) {
  const daemon = await FakeContainerd.start()
  t.after(() => daemon.close())
  prepare(daemon)
  return { daemon, ...follow(t, { rootfs: daemon.rootfs, ...options }) }
}

test('who does not answer as containerd does is told with a reason, once', async t => {
  const cases: [(daemon: FakeContainerd) => void, RegExp][] = [
    [daemon => (daemon.conduct.version = stream => refuse(stream, 12)), /UNIMPLEMENTED/],
    [daemon => (daemon.conduct.version = stream => answer(stream)), /reported no containerd version/],
    [daemon => (daemon.conduct.version = stream => answer(stream, Buffer.from([0xff]))), /ends inside/],
    [daemon => (daemon.conduct.version = stream => stream.close(2)), /reset the stream with INTERNAL_ERROR/],
    [
      daemon => (daemon.conduct.version = stream => answer(stream, Buffer.alloc(5 * 2 ** 20))),
      /larger than 4194304 bytes/,
    ],
    [daemon => (daemon.conduct.namespaces = stream => refuse(stream, 13, 'no%20room')), /INTERNAL: no room/],
    [
      daemon => {
        daemon.containers = [{ id: idOf(1), namespace: 'default' }]
        daemon.conduct.list = stream => answer(stream, Buffer.from([0x0a, 0x7f]))
      },
      /a message of the stream cannot be read/,
    ],
    [
      daemon => {
        daemon.containers = [{ id: idOf(1), namespace: 'default' }]
        daemon.conduct.list = stream => {
          stream.respond(head, { waitForTrailers: true })
          stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
          stream.end(framed(listed(daemon.containers[0]!)).subarray(0, 20))
        }
      },
      /ended within a message/,
    ],
    [daemon => (daemon.conduct.events = stream => refuse(stream, 7)), /PERMISSION_DENIED/],
    [daemon => (daemon.conduct.events = stream => answer(stream)), /event stream/],
    [
      daemon => (daemon.conduct.events = stream => answer(stream, Buffer.from([0x22, 0x7f]))),
      /a message of the stream cannot be read/,
    ],
  ]
  await Promise.all(
    cases.map(async ([prepare, reason]) => {
      const { source, logged } = await scene(t, prepare)
      const hasFailed = () => source.state.hint !== ''
      await until(() => `${reason}: there is a reason; ${JSON.stringify(source.state)}`, 20_000, hasFailed)
      assert.match(source.state.reason, reason)
      await pause(600)
      source.stop()
      assert.equal(logged.length, 1, logged.join(''))
    }),
  )
})

test('who does not speak gRPC, and who hangs, is told as such', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-fake-containerd-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const check = async (name: string, server: Server, reason: RegExp) => {
    const socketPath = join(dir, name)
    await new Promise<void>(resolve => server.listen(socketPath, resolve))
    t.after(() => server.close())
    const { source } = follow(t, { socketPath })
    await until(
      () => `${name}: ${JSON.stringify(source.state)}`,
      20_000,
      () => source.state.reason !== '',
    )
    assert.match(source.state.reason, reason)
    assert.match(source.state.hint, /^check that "ctr --address .* version" works on this host$/)
    source.stop()
  }
  const http1 = createHttp1((_, response) => response.end())
  t.after(() => http1.closeAllConnections())
  const hangs = createRaw(socket => socket.on('error', () => undefined))
  await Promise.all([
    check('http1.sock', http1, /connection was lost|reset/),
    check(
      'imap.sock',
      createRaw(socket => socket.end('* OK IMAP4rev1\r\n')),
      /connection was lost|reset/,
    ),
    check('hangs.sock', hangs, /no answer within 5000 ms/),
  ])
})

test('a socket that is nowhere is no fault, and one that was named is', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-fake-containerd-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const nowhere = follow(t, { rootfs: dir })
  assert.deepEqual(
    [nowhere.source.state.reason, nowhere.source.state.hint, nowhere.logged.length],
    ['no containerd socket found', '', 0],
  )
  const named = follow(t, { socketPath: join(dir, 'containerd.sock') })
  assert.equal(named.source.state.reason, `socket ${dir}/containerd.sock not found`)
  assert.match(named.source.state.hint, /agent\.discovery\.docker\.endpoint/)
  assert.equal(named.logged.length, 1)
})

test('all namespaces are followed but those of Docker, and only numbers that a control group can have', async t => {
  const { daemon, source, told } = await scene(t, daemon => {
    daemon.containers = [
      { id: idOf(1), namespace: 'default', labels: { 'nerdctl/name': 'web', team: 'a' }, image: 'shop:1' },
      { id: idOf(2), namespace: 'moby' },
      { id: idOf(3), namespace: 'plugins.moby' },
      { id: 'redis', namespace: 'default' },
      { id: idOf(4), namespace: 'in\r\nvalid' },
    ]
  })
  await until('one is told', 20_000, () => told.present.has(idOf(1)))
  daemon.emit('/containers/create', 'moby', idOf(2))
  daemon.emit('/tasks/start', 'plugins.moby', idOf(3))
  daemon.emit('/tasks/start', 'default', 'redis')
  daemon.emit('/tasks/start', '', idOf(5))
  daemon.containers.push({ id: idOf(6), namespace: 'shop', labels: { 'nerdctl/name': 'cart' } })
  daemon.emit('/containers/create', 'shop', idOf(6))
  await until('the other is told', 20_000, () => told.present.has(idOf(6)))
  assert.deepEqual([...told.present.keys()], [idOf(1), idOf(6)])
  assert.equal(source.state.containers, 2)
})

test('one that ended within a container is no news, and its removal is', async t => {
  const { daemon, told } = await scene(t, daemon => {
    daemon.containers = [{ id: idOf(1), namespace: 'default' }]
  })
  await until('it is told', 20_000, () => told.present.size === 1)
  const asked = () => daemon.calls.filter(call => call === 'container').length
  const before = asked()
  for (let i = 0; i < 100; i++) daemon.emit('/tasks/exit', 'default', idOf(1), `probe-${i}`)
  daemon.emit('/tasks/oom', 'default', idOf(1))
  daemon.emit('/tasks/exit', 'default', idOf(1), idOf(1))
  await until('it is asked for once', 20_000, () => asked() === before + 1)
  daemon.containers = []
  daemon.emit('/containers/delete', 'default', idOf(1))
  await until('it is gone', 20_000, () => told.present.size === 0)
  assert.equal(asked(), before + 1)
})

test('a container that is too large keeps no other, and none of them goes for it', async t => {
  const { daemon, source, told } = await scene(
    t,
    daemon => {
      daemon.containers = [1, 2, 3].map(number => ({ id: idOf(number), namespace: 'default' }))
    },
    { refreshMs: 100 },
  )
  await until('all are told', 20_000, () => told.present.size === 3)
  const huge = { 'x-env': 'x'.repeat(5 * 2 ** 20) }
  daemon.containers = [{ id: idOf(2), namespace: 'default', annotations: huge }, daemon.containers[2]!]
  await until('it is told', 20_000, () => source.state.reason.includes('larger than 4194304 bytes'))
  assert.deepEqual([source.state.connected, source.state.hint], [true, ''])
  assert.equal(told.present.size, 3)
  daemon.emit('/containers/update', 'default', idOf(2))
  await until('its answer is refused', 20_000, () => source.state.reason.startsWith('cannot read container'))
  daemon.containers = [{ id: idOf(3), namespace: 'default' }]
  await until('the others are gone', 20_000, () => told.present.size === 1)
  await until('the reason is gone', 20_000, () => source.state.reason === '')
})

test('a task that cannot be asked for does not keep the name', async t => {
  const { told } = await scene(t, daemon => {
    daemon.containers = [{ id: idOf(1), namespace: 'default', labels: { 'nerdctl/name': 'web' } }]
    daemon.conduct.task = stream => refuse(stream, 4)
  })
  await until('it is told', 20_000, () => told.named('web') !== undefined)
  assert.deepEqual([told.named('web')!.state, told.named('web')!.pid], ['', 0])
})

test('a list without end costs bounded memory and time, and events of garbage are asked for ever less often', async t => {
  let most = 0
  const before = process.memoryUsage().arrayBuffers
  const { source } = await scene(t, daemon => {
    daemon.containers = [{ id: idOf(1), namespace: 'default' }]
    daemon.conduct.list = stream => {
      stream.respond(head)
      const piece = framed(
        listed({ id: idOf(7), namespace: 'default', annotations: { x: 'x'.repeat(65_536) } }),
      )
      let left = soak ? 8192 : 1024
      const more = () => {
        most = Math.max(most, process.memoryUsage().arrayBuffers)
        while (left-- > 0 && stream.write(piece));
        if (left <= 0) stream.close(2)
      }
      stream.on('drain', more)
      more()
    }
  })
  await until('it is given up', 20_000, () => source.state.hint !== '')
  assert.ok(most - before < 64 * 2 ** 20, `${most - before} bytes`)
  const garbage = await scene(t, daemon => {
    daemon.conduct.events = stream => answer(stream, Buffer.from([0xff, 0xff]))
  })
  const begun = () => garbage.daemon.calls.filter(call => call === 'events').length
  await until('three were begun', 20_000, () => begun() >= 3)
  const then = begun()
  await pause(1000)
  assert.ok(begun() - then <= 3, `${begun() - then} in a second`)
})

test('two of them are followed side by side, and the end of one leaves the other', async t => {
  const { daemon, source, told } = await scene(t, daemon => {
    daemon.containers = [{ id: idOf(1), namespace: 'default' }]
  })
  const k3s = await FakeContainerd.start(join(daemon.rootfs, 'run/k3s/containerd/containerd.sock'))
  t.after(() => k3s.close())
  k3s.containers = [{ id: idOf(2), namespace: 'k8s.io' }]
  await until('both are told', 20_000, () => told.present.size === 2)
  assert.equal(source.state.endpoint, `${daemon.socket}, ${k3s.socket}`)
  assert.equal(source.state.containers, 2)
  daemon.close()
  await until('the loss is known', 20_000, () => source.state.hint !== '')
  assert.equal(source.state.connected, true)
  assert.equal(source.state.endpoint, k3s.socket)
  assert.ok(source.knows(idOf(1)) && source.knows(idOf(2)), 'what was known is kept')
})

test('what the CRI knows besides is told, and labels of an image alone make no pod', () => {
  const cri = { Metadata: { ImageRef: `sha256:${idOf(9)}`, Config: { envs: [{ key: 'SECRET' }] } } }
  const annotations = { 'io.kubernetes.cri.container-name': 'cart', 'io.kubernetes.cri.sandbox-uid': 'u-1' }
  const check = (container: object, want: object) => {
    const told = readContainer(idOf(1), listed({ id: idOf(1), namespace: 'x', ...container }), noTask)
    assert.deepEqual({ ...told, ...want }, told)
  }
  check(
    { annotations, extensions: { 'io.cri-containerd.container.metadata': cri }, image: 'shop:1.2' },
    { name: 'cart', podUid: 'u-1', podContainer: 'cart', imageId: `sha256:${idOf(9)}`, image: 'shop:1.2' },
  )
  const posing = { 'io.kubernetes.pod.uid': 'u-2', 'io.cri-containerd.kind': 'container' }
  check({ labels: posing, image: `sha256:${idOf(9)}` }, { podUid: '', podContainer: '', image: '', name: '' })
  check({ extensions: { other: cri } }, { imageId: '' })
  check(
    { labels: { ['k'.repeat(5000)]: 'x', y: 'y'.repeat(5000) } },
    {
      labels: new Map([
        ['', 'x'],
        ['y', ''],
      ]),
    },
  )
})

test('no bytes make the reader do anything but read or refuse', () => {
  const readers = [
    readVersion,
    readNamespaces,
    readListedId,
    readEvent,
    readTask,
    (bytes: Uint8Array) => readContainer(idOf(1), bytes, noTask),
  ]
  const holds = (bytes: Uint8Array) => {
    for (const read of readers) {
      try {
        const told = JSON.stringify(read(bytes))
        assert.ok(told === undefined || told.length <= 2 * bytes.length + 1000)
      } catch (error) {
        assert.ok(error instanceof RangeError, String(error))
      }
    }
  }
  const whole = listed({
    id: idOf(1),
    namespace: 'k8s.io',
    labels: { a: 'b' },
    image: 'shop:1.2',
    annotations: { 'io.kubernetes.cri.container-name': 'cart' },
    extensions: { 'io.cri-containerd.container.metadata': { Metadata: {} } },
  })
  const event = message([2, 'default'], [3, '/tasks/exit'], [4, message([2, message([1, idOf(1)])])])
  const changed = fc
    .tuple(fc.constantFrom(whole, event), fc.nat(), fc.nat(255), fc.nat())
    .map(([bytes, at, value, end]) => {
      const copy = Uint8Array.from(bytes)
      copy[at % copy.length] = value
      return copy.subarray(0, copy.length - (end % 4 === 0 ? end % copy.length : 0))
    })
  fc.assert(fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), changed), holds), {
    numRuns: soak ? 100_000 : 2_000,
  })
})
