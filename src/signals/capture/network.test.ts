// owns: host
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { afterEach, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { testedNative, testOnKernels } from '../../../test/helpers/native.ts'
import { until } from '../../../test/helpers/program.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { connectFailures, NetworkPair } from '../../foundation/model/network-pair.ts'
import { loadedPrograms } from '../../kernel/loaded.ts'
import { NetworkProbe } from './network.ts'

const skip = withoutBpf
const churn = soak ? 10_000 : 1_000
const open: { close(): unknown }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

/** A Python program that says and hears lines. Its names `server` and `port` are a listener of its own. */
class Talker {
  readonly child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>

  constructor(script: string, ...args: (string | number)[]) {
    this.child = spawn('python3', ['-c', `${prelude}\n${script}`, ...args.map(String)])
    this.child.stderr.pipe(process.stderr)
    this.#lines = createInterface(this.child.stdout)[Symbol.asyncIterator]()
    open.push(this)
  }

  get pid(): number {
    return this.child.pid!
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next()
    assert.ok(!done, 'the program ended')
    return value
  }

  say(line = ''): void {
    this.child.stdin.write(`${line}\n`)
  }

  async close(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.stdin.end()
    await once(this.child, 'exit')
  }
}

const prelude = `
import os, socket, struct, sys, threading
def say(*what): print(*what, flush=True)
def hear(): return sys.stdin.readline()
def linger(s): s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
def listen(address='127.0.0.1', backlog=128):
  s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
  s.bind((address, 0)); s.listen(backlog); return s
def answer(listener, times, size):
  for i in range(times):
    c, _ = listener.accept()
    while c.recv(65536): pass
    c.sendall(b'y' * size); c.close()
def ask(address, port, size):
  c = socket.create_connection((address, port)); c.sendall(b'x' * size); c.shutdown(socket.SHUT_WR)
  while c.recv(65536): pass
  c.close()
`

function start(maxPairs?: number): NetworkProbe {
  const probe = new NetworkProbe(testedNative(), maxPairs)
  open.push(probe)
  return probe
}

function add(sums: NetworkPair, pair: NetworkPair): void {
  for (const [key, value] of Object.entries(pair) as [keyof NetworkPair, unknown][]) {
    if (value instanceof Float64Array) {
      const numbers = sums[key] as Float64Array
      for (const [i, more] of value.entries()) numbers[i]! += more
    } else if (typeof value === 'number' && !['pid', 'netns', 'port'].includes(key))
      Object.assign(sums, { [key]: (sums[key] as number) + value })
    else Object.assign(sums, { [key]: value })
  }
}

/** What came since the last look of processes with these numbers, in one pair for each process, side and port. */
function looked(probe: NetworkProbe, ...pids: number[]): NetworkPair[] {
  const found = new Map<string, NetworkPair>()
  look(probe, pids, found)
  return [...found.values()]
}

/** Adds that to what was found before. False: nothing came. */
function look(probe: NetworkProbe, pids: readonly number[], found: Map<string, NetworkPair>): boolean {
  let isNew = false
  probe.collect(pair => {
    if (!pids.includes(pair.pid)) return
    const id = `${pair.pid} ${pair.server} ${pair.port}`
    const sums = found.get(id) ?? new NetworkPair()
    found.set(id, sums)
    add(sums, pair)
    isNew = true
  }, true)
  return isNew
}

type Numbers = readonly [opened: number, openChange: number, sent: number, received: number]

/**
 * The only pair of each side, once it has these numbers and a further look finds nothing: when a program says that it
 * is done, the kernel may still be at work on its last bytes and ends.
 */
async function settled(
  probe: NetworkProbe,
  pids: readonly number[],
  wanted: { readonly client: Numbers; readonly server: Numbers },
): Promise<{ client: NetworkPair; server: NetworkPair }> {
  const found = new Map<string, NetworkPair>()
  const numbers = (ofServer: boolean) =>
    [...found.values()]
      .filter(({ server }) => server === ofServer)
      .map(({ opened, openChange, sent, received }) => [opened, openChange, sent, received])
  const now = () => [numbers(false), numbers(true)]
  const want = [[wanted.client], [wanted.server]]
  await until(
    () => `client and server have ${JSON.stringify(want)} (${JSON.stringify(now())})`,
    20_000,
    () => !look(probe, pids, found) && isDeepStrictEqual(now(), want),
  )
  const pairs = [...found.values()]
  return { client: only(pairs, false), server: only(pairs, true) }
}

function only(pairs: readonly NetworkPair[], server: boolean): NetworkPair {
  const found = pairs.filter(pair => pair.server === server)
  assert.equal(found.length, 1)
  return found[0]!
}

const total = (numbers: Float64Array) => numbers.reduce((a, b) => a + b, 0)

function failuresOf({ failures }: NetworkPair): Record<string, number> {
  const named: Record<string, number> = {}
  for (const [i, times] of failures.entries()) if (times > 0) named[connectFailures[i]!] = times
  return named
}

for (const address of ['127.0.0.1', '::1'])
  testOnKernels(`connections of ${address} are counted exactly, on both sides`, { skip }, async () => {
    const probe = start()
    const talker = new Talker(`
l = listen('${address}')
t = threading.Thread(target=answer, args=(l, 50, 300)); t.start()
for i in range(50): ask('${address}', l.getsockname()[1], 100 + i)
t.join(); say(l.getsockname()[1]); hear()`)
    const port = Number(await talker.line())
    const sent = 50 * 100 + (50 * 49) / 2
    const { client, server } = await settled(probe, [talker.pid], {
      client: [50, 0, sent, 50 * 300],
      server: [50, 0, 50 * 300, sent],
    })
    for (const pair of [client, server]) {
      const { localAddress, peerAddress, comm } = pair
      assert.deepEqual([localAddress, peerAddress, comm, pair.port], [address, address, 'python3', port])
      // Who is held up has segments sent to it again.
      assert.ok(pair.retransmits < 10, `${pair.retransmits}`)
      assert.equal(total(pair.rttBuckets), 50)
      assert.ok(pair.rttUs > 0)
      assert.deepEqual(failuresOf(pair), {})
    }
    assert.equal(total(client.connectBuckets), 50)
    assert.ok(client.connectNs > 0)
    assert.equal(total(server.connectBuckets), 0)
  })

testOnKernels('an IPv4 peer of a socket of both families has its IPv4 address', { skip }, async () => {
  const probe = start()
  const talker = new Talker(`
l = socket.create_server(('::', 0), family=socket.AF_INET6, dualstack_ipv6=True)
t = threading.Thread(target=answer, args=(l, 1, 3)); t.start()
ask('127.0.0.1', l.getsockname()[1], 5)
t.join(); say('done'); hear()`)
  await talker.line()
  for (const { localAddress, peerAddress } of looked(probe, talker.pid))
    assert.deepEqual([localAddress, peerAddress], ['127.0.0.1', '127.0.0.1'])
})

testOnKernels(
  'connections that live on are counted while they live, and their ends when they end',
  {
    skip,
  },
  async () => {
    const probe = start()
    const talker = new Talker(`
l = listen()
c = socket.create_connection(l.getsockname()); s, _ = l.accept()
say('open')
hear(); c.sendall(b'x' * 1000); s.recv(1000, socket.MSG_WAITALL); say('sent')
hear(); c.sendall(b'x' * 10); s.recv(10, socket.MSG_WAITALL); s.close(); c.close(); say('closed'); hear()`)
    await talker.line()
    const pids = [talker.pid]
    await settled(probe, pids, { client: [1, 1, 0, 0], server: [1, 1, 0, 0] })
    talker.say()
    await talker.line()
    const { client } = await settled(probe, pids, { client: [0, 0, 1000, 0], server: [0, 0, 0, 1000] })
    assert.equal(total(client.rttBuckets), 1)
    talker.say()
    await talker.line()
    await settled(probe, pids, { client: [0, -1, 10, 0], server: [0, -1, 0, 10] })
  },
)

testOnKernels(
  'of connections that are older than the agent counts what they do from then on',
  { skip },
  async () => {
    const talker = new Talker(`
l = listen()
c = socket.create_connection(l.getsockname()); s, _ = l.accept()
c.sendall(b'x' * 5000); s.recv(5000, socket.MSG_WAITALL); say(l.getsockname()[1])
hear(); s.sendall(b'y' * 70); c.recv(70, socket.MSG_WAITALL); say('sent'); hear()`)
    const port = Number(await talker.line())
    const probe = start()
    talker.say()
    await talker.line()
    const { client, server } = await settled(probe, [talker.pid], {
      client: [0, 1, 0, 70],
      server: [0, 1, 70, 0],
    })
    assert.deepEqual([client.port, server.port], [port, port])
  },
)

testOnKernels(
  'attempts that fail are counted by what they failed with, and no connection',
  { skip },
  async () => {
    const probe = start()
    const talker = new Talker(`
closed = listen(); port = closed.getsockname()[1]; closed.close()
for i in range(3):
  try: socket.create_connection(('127.0.0.1', port))
  except ConnectionRefusedError: pass
full = listen(backlog=0); kept = [socket.create_connection(full.getsockname())]
s = socket.socket(); s.setblocking(False); s.connect_ex(full.getsockname()); s.close()
s = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
try: s.connect(full.getsockname())
except TimeoutError: pass
s.close()
say(port, full.getsockname()[1]); hear()`)
    const [refused, full] = (await talker.line()).split(' ').map(Number)
    const pairs = looked(probe, talker.pid)
    const to = (port: number | undefined) => pairs.find(pair => pair.port === port && !pair.server)
    assert.ok(to(refused) && to(full))
    assert.deepEqual(failuresOf(to(refused)!), { connection_refused: 3 })
    assert.deepEqual([to(refused)!.opened, to(refused)!.openChange, to(refused)!.resetsReceived], [0, 0, 0])
    assert.deepEqual(failuresOf(to(full)!), { cancelled: 1, timeout: 1 })
    assert.equal(to(full)!.opened, 1)
    assert.ok(to(full)!.retransmits >= 1, 'the SYN was sent again')
  },
)

testOnKernels('resets are counted on both sides', { skip }, async () => {
  const probe = start()
  const talker = new Talker(`
l = listen()
for i in range(4):
  c = socket.create_connection(l.getsockname()); s, _ = l.accept()
  c.sendall(b'x')
  s.recv(1)
  linger(s); s.close()
  try: c.recv(1)
  except ConnectionResetError: pass
  c.close()
say('done'); hear()`)
  await talker.line()
  const pairs = looked(probe, talker.pid)
  const client = only(pairs, false)
  const server = only(pairs, true)
  assert.deepEqual([client.resetsReceived, client.resetsSent], [4, 0])
  assert.deepEqual([server.resetsReceived, server.resetsSent], [0, 4])
  assert.deepEqual([client.openChange, server.openChange], [0, 0])
})

testOnKernels(
  'a connection belongs to the process that accepted it, not to the one that listens',
  {
    skip,
  },
  async () => {
    const probe = start()
    const talker = new Talker(`
l = listen()
child = os.fork()
if child == 0:
  answer(l, 20, 10); os._exit(0)
for i in range(20): ask('127.0.0.1', l.getsockname()[1], 10)
os.waitpid(child, 0)
say(child); hear()`)
    const child = Number(await talker.line())
    const { server } = await settled(probe, [talker.pid, child], {
      client: [20, 0, 200, 200],
      server: [20, 0, 200, 200],
    })
    assert.equal(server.pid, child)
  },
)

testOnKernels('connections that come and go leave nothing behind', { skip }, async () => {
  const probe = start()
  const talker = new Talker(`
l = listen()
threading.Thread(target=answer, args=(l, ${churn}, 1), daemon=True).start()
for i in range(${churn}): ask('127.0.0.1', l.getsockname()[1], 1)
say('done'); hear()`)
  await talker.line()
  const sums = new Map<boolean, number>()
  const held: number[] = []
  await until('pairs that are idle are let go', 20_000, () => {
    for (const pair of looked(probe, talker.pid))
      sums.set(pair.server, (sums.get(pair.server) ?? 0) + pair.opened)
    held.push(probe.sizeOf(talker.pid))
    return held.at(-1) === 0
  })
  assert.deepEqual([sums.get(false), sums.get(true)], [churn, churn])
  assert.equal(Math.max(...held), 2)
  assert.deepEqual(probe.counters(), { overflowed: 0, storage_full: 0 })
})

testOnKernels(
  'a user who has its share of the pairs leaves room for others, and all of it when its connections end',
  {
    skip,
  },
  async () => {
    // Whatever else runs on this machine has pairs, too.
    const probe = start(1_200)
    const script = `
import encodings.idna # cannot be read by everybody
os.setuid(int(sys.argv[1]))
listener = listen('0.0.0.0')
for line in sys.stdin:
  held = []
  for i in range(400):
    held.append(socket.create_connection(('127.1.%d.%d' % (i >> 7, (i & 127) + 1), listener.getsockname()[1])))
    held.append(listener.accept()[0])
  say('open'); hear()
  for c in held: c.close()
  say('closed')
`
    const [greedy, other] = [new Talker(script, 60_001), new Talker(script, 60_002)]
    const told = async (talker: Talker) => {
      talker.say()
      await talker.line()
    }
    const size = ({ pid }: Talker) => {
      // Sides that were accepted are seen among open files.
      probe.collect(() => {}, true)
      return probe.sizeOf(pid)
    }
    await told(greedy)
    // Each connection has two pairs, one for each side.
    const had = size(greedy)
    assert.ok(had >= 300 && had <= 600, `${had}`)
    await told(other)
    assert.ok(size(other) >= 100, `${size(other)}`)
    assert.ok(probe.counters().overflowed > 0)
    for (const talker of [greedy, other]) await told(talker)
    await until('pairs that are idle are let go', 20_000, () => size(greedy) + size(other) === 0)
    await told(greedy)
    assert.ok(size(greedy) >= 300, `${size(greedy)}`)
  },
)

testOnKernels('the agent does not count its own connections', { skip }, async () => {
  const probe = start()
  const server = createServer(socket => socket.end('hello')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const socket = connect(port, '127.0.0.1').resume()
  await once(socket, 'close')
  server.close()
  assert.deepEqual(looked(probe, process.pid), [])
})

test('pairs are handed on in turns, once each, whatever else looks at them meanwhile', { skip }, async () => {
  const probe = start()
  // A listener for each pair, so that there are several batches of them.
  const talker = new Talker(`
kept = []
for i in range(200):
  l = listen(); c = socket.create_connection(l.getsockname()); s, _ = l.accept()
  kept.append((l, c, s))
say('done'); hear()`)
  await talker.line()
  const opened = new Map<string, number>()
  const take = (pair: NetworkPair) => {
    if (pair.pid !== talker.pid) return
    const id = `${pair.server} ${pair.port}`
    opened.set(id, (opened.get(id) ?? 0) + pair.opened)
    const end = performance.now() + 1
    while (performance.now() < end);
    during.add(turns)
  }
  const during = new Set<number>()
  let turns = 0
  const turn = setInterval(() => turns++, 1)
  const inTurns = probe.collectInTurns(take)
  await until('half of them were handed on', 20_000, () => opened.size >= 100)
  // With the files of all processes: accepted connections without data are found there, and not each time if that is slow.
  probe.collect(take, true)
  await inTurns
  clearInterval(turn)
  assert.ok(during.size >= 2, 'others have their turns')
  assert.deepEqual([opened.size, new Set(opened.values())], [400, new Set([1])])

  const closed = probe.collectInTurns(take)
  probe.close()
  await closed
})

test('what is closed reads nothing and can be closed again', { skip }, () => {
  const probe = start()
  probe.close()
  probe.close()
  probe.collect(() => assert.fail())
  assert.deepEqual(loadedPrograms('net'), [])
})
