// owns: host
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { inspect } from 'node:util'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import { SyscallPeer } from '../../../test/helpers/syscall-peer.ts'
import { hasTracefs, withoutTracepoints, withTracefs } from '../../../test/helpers/tracefs.ts'
import type { Segment } from '../../foundation/model/stream.ts'
import { svcProtocol } from '../../kernel/gen/syscalls.ts'
import { SyscallCapture, type SyscallCaptureOptions } from './syscall-capture.ts'
import { pidOf } from './syscall-connections.ts'

const skip = withoutTracepoints
const request = 'GET /here HTTP/1.1\r\nHost: here\r\n\r\n'
const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'

interface Piece extends Omit<Segment, 'bytes' | 'start' | 'end'> {
  readonly text: string
}

/** A capture, and what it saw of one process. */
class Watch {
  readonly pieces: Piece[] = []
  readonly threads: number[][] = []
  readonly capture: SyscallCapture
  /** Whose segments are kept. */
  pid = 0

  constructor(options: Partial<SyscallCaptureOptions> = {}) {
    const never = () => assert.fail('this back end has no exchanges')
    this.capture = new SyscallCapture(
      nativeOrThrow(),
      { name: 'syscalls' },
      {
        ringBytes: 2 ** 22,
        perfBytes: 2 ** 20,
        backlogBytes: 0,
        captureBytes: 1024,
        protocols: svcProtocol,
        includePorts: [],
        excludePorts: [],
        maxPerSecond: 0,
        alwaysErrors: true,
        alwaysSlow: true,
        slowNs: 1e9,
        boundsNs: [],
        ...options,
      },
      {
        begin: never,
        end: never,
        counted: never,
        skipped: never,
        thread: (...numbers) => this.threads.push(numbers),
        segment: segment => {
          if (this.pid !== 0 && pidOf(segment.connection) !== this.pid) return
          const { bytes, start, end, ...rest } = segment
          this.pieces.push({ ...rest, text: bytes.toString('latin1', start, end) })
        },
      },
    )
  }

  /** What was seen so far; the last millisecond waits for what may have come before it. */
  async seen(): Promise<Piece[]> {
    for (let looks = 0; looks < 4; looks++) {
      await new Promise(resolve => setTimeout(resolve, 5))
      this.capture.drain()
    }
    return this.pieces
  }

  /** Waits for what is looked up in /proc, which is not read again and again. */
  async until(wanted: () => boolean): Promise<void> {
    for (const end = performance.now() + 10_000; performance.now() < end && !wanted(); ) await this.seen()
  }

  /** All of it, with the counters, for the message of a failure. */
  seenText(how: string): string {
    const counted = Object.entries(this.capture.counters()).filter(([, count]) => count > 0)
    return inspect({ how, pieces: this.pieces, counters: Object.fromEntries(counted) }, { depth: 4 })
  }

  /** The bytes of one side and direction, as far as they were captured. */
  text(server: boolean, received: boolean): string {
    const of = this.pieces.filter(
      piece => piece.server === server && piece.received === received && !piece.closed,
    )
    return of.map(({ text }) => text).join('')
  }
}

let peer: SyscallPeer
/** One for most tests, as taking the programs away takes the kernel seconds. */
let shared: Watch | undefined
let watch: Watch

/** A capture that has seen nothing of the process yet. */
async function watching(): Promise<Watch> {
  shared ??= new Watch()
  await shared.seen()
  shared.pieces.length = 0
  shared.threads.length = 0
  shared.pid = peer.pid
  return shared
}

if (hasTracefs || skip !== false) {
  before(async () => {
    if (skip === false) peer = await SyscallPeer.start()
  })
  afterEach(() => {
    if (watch !== shared) watch.capture.close()
  })
  after(async () => {
    shared?.capture.close()
    await peer?.close()
  })
} else {
  test('where tracefs is mounted', { skip }, () => {
    const [command, ...args] = [...withTracefs, process.execPath, '--test', import.meta.filename]
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const { status, stdout } = spawnSync(command!, args, { env, encoding: 'utf8' })
    assert.equal(status, 0, stdout)
  })
}

/** A test that this process can do, or its child where tracefs is mounted. */
function check(name: string, body: () => Promise<void>): void {
  if (hasTracefs || skip !== false) test(name, { skip }, body)
}

/** Sends by one call and receives by another, both ways. */
async function move(send: string, receive: string): Promise<void> {
  await peer.run(`
    client, server = pair()
    def send(s, data): ${send}
    def receive(s): ${receive}
    send(client, ${JSON.stringify(request)}.encode())
    receive(server)
    send(server, ${JSON.stringify(answer)}.encode())
    receive(client)
    client.close(); server.close()`)
}

/** The kernel runs these programs no more, as it leaves some out at times since Linux 7. */
function leaveOut(capture: SyscallCapture, programs: RegExp): void {
  const { object } = capture
  for (const { name } of object.programs()) if (programs.test(name)) object.detach(name)
}

/** Other programs that have lost the CPU hold all scratch, or none, as on Linux 7. */
function holdScratch(capture: SyscallCapture, held: boolean): void {
  const { object } = capture
  const native = nativeOrThrow()
  const map = object.map('scratch')
  const value = Buffer.alloc(map.slotSize)
  // Of each CPU: its holder, and how many want it.
  if (held)
    for (let at = 0; at < value.length; at += value.length / native.numCpus()) {
      value.writeBigUInt64LE(2n ** 64n - 1n, at)
      value.writeBigUInt64LE(1n, at + 8)
    }
  for (let slot = 0; slot < 4; slot++) native.mapUpdate(map, Buffer.from([slot, 0, 0, 0]), value, 0)
}

for (const [how, given] of [
  ['', undefined],
  [', by perf buffers as well', { perf: true }],
  [', once on Linux 7 as well, also where the first program is left out', { kernel: '7.0' }],
] as const)
  check(`every call that moves bytes is seen${how}`, async () => {
    watch = given === undefined ? await watching() : new Watch(given)
    watch.pid = peer.pid
    const ways = [
      ['s.send(data)', 's.recv(4096)'],
      ['os.write(s.fileno(), data)', 'os.read(s.fileno(), 4096)'],
      [
        'os.writev(s.fileno(), [data[:3], b"", data[3:9], data[9:]])',
        'os.readv(s.fileno(), [bytearray(5), bytearray(4000)])',
      ],
      ['s.sendmsg([data[:1], data[1:]])', 's.recvmsg(4096)'],
      [
        's.sendmsg([data[i:i + 1] for i in range(0, len(data), 1)])',
        's.recvmsg_into([bytearray(7) for _ in range(9)])',
      ],
      ['s.sendall(data)', 's.recvfrom_into(bytearray(4096))'],
    ] as const
    for (const [i, [send, receive]] of ways.entries()) {
      if (how.includes('left out') && i === 3)
        leaveOut(watch.capture, /^svc_(enter|exit)_(?!shutdown|listen)/)
      // Loads and detachments take seconds, in which other tests may fill the ring.
      await watch.seen()
      watch.pieces.length = 0
      const { segments_lost } = watch.capture.counters()
      await move(send, receive)
      await watch.seen()
      const seen = watch.seenText(`${send}, ${receive}`)
      assert.equal(watch.text(false, false), request, seen)
      assert.equal(watch.text(true, true), request, seen)
      assert.equal(watch.text(true, false), answer, seen)
      assert.equal(watch.text(false, true), answer, seen)
      assert.equal(watch.pieces.filter(({ closed }) => closed).length, 2)
      assert.equal(watch.capture.counters().segments_lost, segments_lost)
    }
    assert.equal(watch.capture.counters().fault, 0)
  })

check('both sides of a connection tell the same ends, and number its bytes alike', async () => {
  watch = await watching()
  const found = await peer.run<{ ends: number[]; v6: number[] }>(`
    result = {}
    for name, family, host in (('ends', socket.AF_INET, '127.0.0.1'), ('v6', socket.AF_INET6, '::1')):
        client, server = pair(family, host)
        for i in range(3):
            client.send(${JSON.stringify(request)}.encode()); server.recv(4096)
            server.send(${JSON.stringify(answer)}.encode()); client.recv(4096)
        result[name] = ends(client)
        client.close(); server.close()`)
  await watch.seen()
  for (const [address, [clientPort, serverPort]] of [
    ['127.0.0.1', found.ends],
    ['::1', found.v6],
  ] as const) {
    for (const server of [false, true])
      for (const received of [false, true]) {
        const [localPort, peerPort] = server ? [serverPort, clientPort] : [clientPort, serverPort]
        const of = watch.pieces.filter(
          piece =>
            piece.localPort === localPort &&
            piece.peerPort === peerPort &&
            piece.received === received &&
            !piece.closed,
        )
        const length = server === received ? request.length : answer.length
        assert.deepEqual(
          of.map(({ sequence }) => sequence),
          [1, 1 + length, 1 + 2 * length],
        )
        assert.deepEqual(
          of.map(({ position }) => position),
          [0, length, 2 * length],
        )
        for (const piece of of) {
          assert.equal(piece.localAddress, address)
          assert.equal(piece.peerAddress, address)
          assert.equal(piece.server, server)
          assert.equal(piece.joined, false)
          assert.equal(piece.protocol, 'http1')
          assert.equal(piece.comm, 'python3')
        }
      }
  }
})

check('what causes comes before what it causes, whichever thread ends its call first', async () => {
  const talk = `
    client, server = pair()
    def serve():
        while server.recv(4096): server.send(${JSON.stringify(answer)}.encode())
    thread = threading.Thread(target=serve)
    thread.start()
    for i in range(300):
        client.send(${JSON.stringify(request)}.encode()); client.recv(4096)
    client.close(); thread.join(); server.close()`
  // A thread that loses its CPU within its call for longer than the others' records wait comes behind them.
  let late = 1200
  for (let run = 0; run < 5 && late > 12; run++) {
    watch = await watching()
    await peer.run(talk)
    await watch.seen()
    const order = watch.pieces
      .filter(({ closed }) => !closed)
      .map(({ server, received }) => (server ? 's' : 'c') + (received ? '<' : '>'))
    assert.equal(order.length, 1200)
    late = Math.min(late, order.filter((step, i) => step !== ['c>', 's<', 's>', 'c<'][i % 4]).length)
  }
  assert.ok(late <= 12, `${late} of 1200 steps are told in another order`)
})

check('bytes that were looked at only, and calls that moved none, are not counted', async () => {
  watch = await watching()
  await peer.run(`
    client, server = pair()
    server.setblocking(False)
    def attempt():
        try: server.recv(4096)
        except BlockingIOError: pass
    attempt()
    client.send(${JSON.stringify(request)}.encode())
    time.sleep(0.01)
    server.recv(4096, socket.MSG_PEEK)
    server.recv(20); attempt.__call__(); attempt()
    client.close(); server.close()`)
  await watch.seen()
  assert.equal(watch.text(true, true), request)
  const served = watch.pieces.filter(({ server, closed }) => server && !closed)
  assert.ok(served.every(({ blocking }) => !blocking))
  assert.ok(watch.pieces.filter(({ server, closed }) => !server && !closed).every(({ blocking }) => blocking))
})

check('of a long turn the beginning is captured, and the end of each call after that', async () => {
  watch = await watching()
  await peer.run(`
    client, server = pair()
    body = bytes(65 + i % 26 for i in range(100000))
    head = b'POST /x HTTP/1.1\\r\\nContent-Length: 100000\\r\\n\\r\\n'
    def drain():
        left = len(head) + len(body)
        while left: left -= len(server.recv(1 << 20))
    thread = threading.Thread(target=drain)
    thread.start()
    client.sendall(head)
    for i in range(0, 100000, 25000): client.sendmsg([body[i:i + 1000], body[i + 1000:i + 25000]])
    thread.join()
    client.close(); server.close()`)
  await watch.seen()
  const body = String.fromCharCode(...Array.from({ length: 26 }, (_, i) => 65 + i))
  const whole = `POST /x HTTP/1.1\r\nContent-Length: 100000\r\n\r\n${body.repeat(4000).slice(0, 100_000)}`
  for (const server of [false, true]) {
    let position = 0
    let captured = 0
    for (const piece of watch.pieces.filter(each => each.server === server && !each.closed)) {
      assert.equal(piece.position, position)
      const first = piece.text.length - piece.tail
      if (piece.text.length === piece.length) assert.equal(piece.tail, 0)
      assert.equal(piece.text.slice(0, first), whole.slice(position, position + first))
      position += piece.length
      assert.equal(piece.text.slice(first), whole.slice(position - piece.tail, position))
      captured += piece.text.length
    }
    assert.equal(position, whole.length)
    assert.ok(captured >= 16_384 && captured < 20_000, `${captured}`)
  }
  const ofClient = watch.pieces.filter(each => !each.server && !each.closed)
  assert.equal(ofClient.at(-1)!.tail, 64)
})

check('what a file gives by sendfile is a gap', async () => {
  watch = await watching()
  await peer.run(`
    client, server = pair()
    client.send(${JSON.stringify(request)}.encode()); server.recv(4096)
    server.send(b'HTTP/1.1 200 OK\\r\\nContent-Length: 5000\\r\\n\\r\\n')
    with tempfile.TemporaryFile() as file:
        file.write(b'x' * 5000); file.flush()
        os.sendfile(server.fileno(), file.fileno(), 0, 5000)
    client.close(); server.close()`)
  await watch.seen()
  const served = watch.pieces.filter(({ server, received, closed }) => server && !received && !closed)
  assert.deepEqual(
    served.map(({ length, text }) => [length, text.length]),
    [
      [41, 41],
      [5000, 0],
    ],
  )
})

check('a descriptor that is used again is another connection', async () => {
  watch = await watching()
  const ports = await peer.run<number[][]>(`
    result = []
    for i in range(40):
        client, server = pair()
        client.send(${JSON.stringify(request)}.encode()); server.recv(4096)
        result.append(ends(client))
        client.close(); server.close()`)
  await watch.seen()
  for (const server of [false, true]) {
    const of = watch.pieces.filter(piece => piece.server === server)
    assert.equal(new Set(of.map(({ connection }) => connection)).size, 40)
    assert.equal(of.filter(({ closed }) => closed).length, 40)
    assert.deepEqual(
      of
        .filter(({ closed }) => !closed)
        .map(({ localPort, peerPort }) => (server ? [peerPort, localPort] : [localPort, peerPort])),
      ports,
    )
  }
})

check('a server that does not ask for its client’s address learns it, open or closed', async () => {
  watch = await watching()
  const ports = await peer.run<number[][]>(`
    import ctypes
    libc = ctypes.CDLL(None)
    listener = socket.socket()
    listener.bind(('127.0.0.1', 0)); listener.listen(8)
    result, kept = [], []
    for i in range(8):
        client = socket.create_connection(listener.getsockname())
        server = libc.accept(listener.fileno(), None, None)
        client.send(${JSON.stringify(request)}.encode()); os.read(server, 4096)
        result.append(ends(client))
        if i % 2: kept.append((client, server))
        else: os.close(server); client.close()
    listener.close()`)
  await watch.until(() => watch.pieces.filter(({ server, closed }) => server && !closed).length >= 8)
  const served = watch.pieces.filter(({ server, closed }) => server && !closed)
  const found = served.map(({ localPort, peerPort, peerAddress }) => [peerPort, localPort, peerAddress])
  assert.deepEqual(
    found.sort((a, b) => Number(a[0]) - Number(b[0])),
    ports.map(each => [...each, '127.0.0.1']).sort((a, b) => Number(a[0]) - Number(b[0])),
  )
  await peer.run('for client, server in kept: client.close(); os.close(server)')
})

check('files and Unix sockets that hold the same text are not passed on', async () => {
  watch = await watching()
  await peer.run(`
    a, b = socket.socketpair()
    a.send(${JSON.stringify(request)}.encode()); b.recv(4096)
    b.send(${JSON.stringify(answer)}.encode()); a.recv(4096)
    with tempfile.TemporaryFile() as file:
        fd = file.fileno()
        os.write(fd, ${JSON.stringify(request)}.encode()); os.lseek(fd, 0, 0); os.read(fd, 4096)
        time.sleep(0.15)
        os.lseek(fd, 0, 0); os.read(fd, 4096)
    a.close(); b.close()`)
  await watch.seen()
  assert.deepEqual(
    watch.pieces.filter(({ closed }) => !closed),
    [],
  )
})

check('a connection that a process was given is found in /proc', async () => {
  watch = await watching()
  watch.pid = 0
  const [clientPort, serverPort, child] = await peer.run<number[]>(`
    client, server = pair()
    child = os.fork()
    if child == 0:
        server.recv(4096); server.send(${JSON.stringify(answer)}.encode())
        time.sleep(60)
        os._exit(0)
    client.send(${JSON.stringify(request)}.encode()); client.recv(4096)
    result = ends(client) + [child]`)
  await watch.until(() => watch.pieces.filter(({ pid }) => pid === child).length >= 2)
  await peer.run('os.kill(child, 9); os.waitpid(child, 0); client.close(); server.close()')
  const served = watch.pieces.filter(({ pid, closed }) => pid === child && !closed)
  assert.equal(served.map(({ text }) => text).join(''), request + answer)
  for (const piece of served) {
    assert.ok(piece.server && piece.joined && piece.blocking)
    assert.deepEqual([piece.localPort, piece.peerPort], [serverPort, clientPort])
    assert.equal(piece.sequence, 0)
  }
})

check('connections that are older are followed, and calls that were waiting then are seen', async () => {
  const ports = await peer.run<number[]>(`
    client, server = pair()
    def serve():
        while server.recv(4096): server.send(${JSON.stringify(answer)}.encode())
    thread = threading.Thread(target=serve)
    thread.start()
    time.sleep(0.05)
    result = ends(client)`)
  watch = new Watch()
  watch.pid = peer.pid
  await watch.capture.bootstrapped
  assert.ok(watch.capture.socketsFound >= 2)
  await peer.run(`
    for i in range(2):
        client.send(${JSON.stringify(request)}.encode()); client.recv(4096)
    client.close(); thread.join(); server.close()`)
  await watch.seen()
  for (const server of [false, true]) {
    assert.equal(watch.text(server, server), request + request)
    assert.equal(watch.text(server, !server), answer + answer)
  }
  for (const { server, joined, localPort, peerPort, closed } of watch.pieces) {
    assert.ok(joined || closed)
    assert.deepEqual(server ? [peerPort, localPort] : [localPort, peerPort], ports)
  }
})

check('a process that is killed ends its connections', async () => {
  watch = await watching()
  const other = await SyscallPeer.start()
  watch.pid = other.pid
  await other.run(`
    client, server = pair()
    client.send(${JSON.stringify(request)}.encode()); server.recv(4096)
    memory = mmap.mmap(-1, 2 ** 28)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, len(memory), mmap.PAGESIZE): memory[at] = 1`)
  await watch.seen()
  const ended = () => watch.pieces.filter(({ closed }) => closed)
  assert.equal(ended().length, 0)
  // The kernel frees its memory first: meanwhile its end is told and its descriptors are there still.
  await Promise.all([other.close(), watch.until(() => ended().length >= 2)])
  await watch.seen()
  const open = new Set(watch.pieces.filter(({ closed }) => !closed).map(({ connection }) => connection))
  const closed = new Set(ended().map(({ connection }) => connection))
  assert.deepEqual(closed, open)
  assert.equal(open.size, 2)
})

check('a reset connection says so', async () => {
  watch = await watching()
  await peer.run(`
    client, server = pair()
    client.send(${JSON.stringify(request)}.encode()); server.recv(4096)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    server.close()
    try: client.recv(4096)
    except ConnectionResetError: pass
    client.close()`)
  await watch.seen()
  const ends = watch.pieces.filter(({ closed, server }) => closed && !server)
  assert.deepEqual(
    ends.map(({ errno }) => errno),
    [104],
  )
})

check('ports that are excluded are not passed on, and what went by meanwhile is a gap', async () => {
  watch = await watching()
  const rules = { includePorts: [], excludePorts: [], maxPerSecond: 0 }
  const more = { alwaysErrors: true, alwaysSlow: true, slowNs: 1e9 }
  const ask = `client.send(${JSON.stringify(request)}.encode()); server.recv(4096)`
  const [, port] = await peer.run<number[]>(`
    client, server = pair()
    ${ask}
    result = ends(client)`)
  await watch.seen()
  watch.capture.apply({ ...rules, ...more, excludePorts: [port!] })
  await peer.run(ask)
  await watch.seen()
  watch.capture.apply({ ...rules, ...more, includePorts: [port!] })
  await peer.run(`${ask}; client.close(); server.close()`)
  await watch.seen()
  watch.capture.apply({ ...rules, ...more })
  const asked = watch.pieces.filter(({ server, closed }) => !server && !closed)
  assert.deepEqual(
    asked.map(({ position }) => position),
    [0, 2 * request.length],
  )
})

check('of a connection that was refused nothing more is passed on', async () => {
  watch = await watching()
  const ask = `client.send(${JSON.stringify(request)}.encode()); server.recv(4096)`
  await peer.run(`
    client, server = pair()
    ${ask}`)
  await watch.seen()
  const [first, second] = new Set(watch.pieces.map(({ connection }) => connection))
  watch.capture.refuse(first!)
  watch.capture.refuse(second!)
  watch.pieces.length = 0
  await peer.run(`${ask}; client.close(); server.close()`)
  assert.deepEqual(await watch.seen(), [])
})

check('lookups of names are read from their datagrams', async () => {
  watch = await watching()
  await peer.run(`
    name = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    name.bind(('127.0.0.77', 53))
    query = struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + b'\\x04host\\x00' + struct.pack('>2H', 1, 1)
    connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    connected.connect(('127.0.0.77', 53))
    connected.send(query)
    data, peer = name.recvfrom(512); name.sendto(b'\\x00\\x07\\x81' + data[3:], peer)
    connected.recv(512); connected.close()
    free = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    free.sendto(query, ('127.0.0.77', 53))
    data, peer = name.recvfrom(512); name.sendto(b'\\x00\\x07\\x81' + data[3:], peer)
    free.recvfrom(512); free.close(); name.close()`)
  await watch.seen()
  const asked = watch.pieces.filter(({ closed }) => !closed)
  assert.deepEqual(
    asked.map(({ protocol, received, text }) => [protocol, received, text.length]),
    [
      ['dns', false, 22],
      ['dns', true, 22],
      ['dns', false, 22],
      ['dns', true, 22],
    ],
  )
  for (const { peerAddress, peerPort, server } of asked)
    assert.deepEqual([peerAddress, peerPort, server], ['127.0.0.77', 53, false])
})

check('the agent does not see itself', async () => {
  watch = await watching()
  watch.pid = 0
  const port = await peer.run<number>(`
    import http.server
    web = http.server.HTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    result = web.server_port`)
  assert.equal(watch.capture.selfPid, process.pid)
  await new Promise(resolve => get({ port, agent: false }, answer => answer.resume().on('end', resolve)))
  const pids = new Set((await watch.seen()).map(({ pid }) => pid))
  assert.ok(pids.has(peer.pid) && !pids.has(process.pid))
  await peer.run('web.shutdown(); web.server_close()')
})

/** Runs Python statements while nothing is read. */
async function unread<T>(code: string): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-unread-'))
  try {
    const done = peer.run<T>(`${code}\n    open('${directory}/done', 'w').close()`)
    const word = new Int32Array(new SharedArrayBuffer(4))
    for (let waits = 0; waits < 2_000 && !existsSync(`${directory}/done`); waits++)
      Atomics.wait(word, 0, 0, 10)
    return await done
  } finally {
    rmSync(directory, { recursive: true })
  }
}

check('what finds no room in a perf buffer is counted for its CPU', async () => {
  watch = new Watch({ perf: true, perfBytes: 2 ** 15 })
  watch.pid = peer.pid
  const counts = () => watch.capture.perfBuffers.find(({ cpu }) => cpu === 0)!
  const rounds = 400
  const talk = (count: number) => `
    os.sched_setaffinity(0, {0})
    for i in range(${count}):
        client, server = pair()
        client.send(${JSON.stringify(request)}.encode()); server.recv(4096)
        client.close(); server.close()
    os.sched_setaffinity(0, range(os.cpu_count()))`
  await unread(talk(rounds))
  await watch.seen()
  await peer.run(talk(1)) // behind a loss the kernel tells of it
  await watch.seen()
  const { received, lost } = counts()
  assert.ok(received > 0 && lost > 0, `${received} received, ${lost} lost`)
  const lostOfAll = () => watch.capture.perfBuffers.reduce((sum, each) => sum + each.lost, 0)
  assert.equal(watch.capture.counters().segments_lost, lostOfAll())
  // Two parts and two ends of each.
  assert.ok(watch.pieces.length < 4 * rounds && watch.pieces.length + lost >= 4 * rounds)
  watch.capture.close()
  assert.ok(lostOfAll() >= lost && watch.capture.counters().segments_lost >= lostOfAll())
})

check('a flood fills the ring only as far as others still find room', async () => {
  watch = new Watch({ ringBytes: 2 ** 16 })
  const quiet = 3
  const talks = `
    def talk(uid, count):
        child = os.fork()
        if child == 0:
            os.setuid(uid)
            client, server = pair()
            for i in range(count):
                client.send(${JSON.stringify(request)}.encode()); server.recv(4096)
                server.send(${JSON.stringify(answer)}.encode()); client.recv(4096)
            os._exit(0)
        os.waitpid(child, 0)
        return child
    result = [talk(65534, 500)] + [talk(65000 + i, 3) for i in range(${quiet})]`
  watch.capture.drain()
  const [flooding, ...others] = await unread<number[]>(talks)
  await watch.seen()
  const of = (pid: number) =>
    watch.pieces.filter(({ connection, closed }) => pidOf(connection) === pid && !closed).length
  const whole = others.filter(pid => of(pid) === 12).length
  // One of 128 has the number of the flood's group.
  assert.ok(whole >= quiet - 1, `${whole} of ${quiet} were told whole`)
  assert.ok(of(flooding!) > 50 && of(flooding!) < 2000, `${of(flooding!)} of the flood`)
  assert.ok(watch.capture.counters().segments_lost > 0)
})

check('threads that are started are told', async () => {
  watch = await watching()
  const tid = await peer.run<number>(`
    thread = threading.Thread(target=lambda: globals().update(result=threading.get_native_id()))
    thread.start(); thread.join()`)
  await watch.seen()
  assert.ok(
    watch.threads.some(([pid, parent, child]) => pid === peer.pid && parent === peer.pid && child === tid),
  )
})

check('what needs no scratch takes none: ends of connections, their addresses, threads', async () => {
  watch = new Watch({ kernel: '7.0' })
  watch.pid = peer.pid
  const ports = await peer.run<number[][]>(`
    import ctypes
    libc = ctypes.CDLL(None)
    listener = socket.socket()
    listener.bind(('127.0.0.1', 0)); listener.listen(8)
    kept, result = [], []
    for i in range(3):
        client = socket.create_connection(listener.getsockname())
        server = libc.accept(listener.fileno(), None, None)
        client.send(${JSON.stringify(request)}.encode()); os.read(server, 4096)
        kept.append((client, server))
        result.append(ends(client))
    listener.close()`)
  holdScratch(watch.capture, true)
  const tid = await peer.run<number>(`
    thread = threading.Thread(target=lambda: globals().update(result=threading.get_native_id()))
    thread.start(); thread.join()
    libc.shutdown(kept[0][1], 2)
    for client, server in kept: os.close(server); client.close()`)
  holdScratch(watch.capture, false)
  await watch.until(() => watch.pieces.length >= 12)
  const of = (server: boolean, closed: boolean) =>
    watch.pieces.filter(piece => piece.server === server && piece.closed === closed)
  assert.deepEqual([of(false, true).length, of(true, true).length], [3, 3])
  assert.deepEqual(
    of(true, false).map(({ localPort, peerPort }) => [peerPort, localPort]),
    ports,
  )
  assert.ok(watch.threads.some(([pid, , child]) => pid === peer.pid && child === tid))
})

check('bytes that found no scratch are a gap, as the next call reports', async () => {
  watch = new Watch({ kernel: '7.0' })
  watch.pid = peer.pid
  const ask = `client.send(${JSON.stringify(request)}.encode()); server.recv(4096)`
  await peer.run(`
    import ctypes
    libc = ctypes.CDLL(None)
    client, server = pair()
    ${ask}`)
  holdScratch(watch.capture, true)
  // The client sends it as three messages (struct mmsghdr).
  await peer.run(`
    data = ${JSON.stringify(request)}.encode()
    parts = [ctypes.create_string_buffer(part, len(part)) for part in (data[:5], data[5:20], data[20:])]
    buffers = [struct.pack('QQ', ctypes.addressof(part), len(part)) for part in parts]
    buffers = [ctypes.create_string_buffer(each, 16) for each in buffers]
    messages = b''.join(struct.pack('QQQQQQQQ', 0, 0, ctypes.addressof(each), 1, 0, 0, 0, 0) for each in buffers)
    messages = ctypes.create_string_buffer(messages, len(messages))
    result = libc.sendmmsg(client.fileno(), messages, len(parts), 0)
    server.recv(4096)`)
  holdScratch(watch.capture, false)
  await peer.run(`
    ${ask}; ${ask}
    client.close(); server.close()`)
  await watch.until(() => watch.pieces.length >= 8)
  for (const server of [false, true]) {
    const of = watch.pieces.filter(piece => piece.server === server && !piece.closed)
    assert.deepEqual(
      of.map(({ position, sequence, missed }) => [position, sequence, missed]),
      [0, 2, 3].map(call => [call * request.length, 1 + call * request.length, call === 2]),
    )
  }
  assert.ok(watch.capture.counters().storage_full >= 2)
})
