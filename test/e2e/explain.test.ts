// owns: host
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { after, afterEach, before, test } from 'node:test'
import type { ExplainDocument } from '../../src/view/api/ui/documents.ts'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { type Certificates, makeCertificates } from '../helpers/certificates.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { freePort, until } from '../helpers/program.ts'
import { Telemetry } from '../helpers/telemetry.ts'

const skip = withoutBpf
const patienceMs = 60_000

type Subject = ExplainDocument['subjects'][number]

/** What is to be ended after a test, and after all. */
const open: (() => unknown)[] = []
const shared: (() => unknown)[] = []
afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end()
})
after(async () => {
  for (const end of shared.splice(0).reverse()) await end()
})

/** A program that says on its first line at which ports it listens. It ends with its input. */
class Peer {
  readonly child: ChildProcess
  ports: number[] = []

  static async start(command: string, args: readonly string[]): Promise<Peer> {
    const peer = new Peer(spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] }))
    for await (const line of createInterface(peer.child.stdout!)) {
      peer.ports = line.split(' ').map(Number)
      break
    }
    shared.push(() => peer.end())
    return peer
  }

  private constructor(child: ChildProcess) {
    this.child = child
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const ended = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await ended
  }
}

/** Answers HTTP at so many ports, and at one more sends back whatever comes. */
const serverScript = (count: number) => `
const ports = []
const listening = server => new Promise(resolve =>
  server.listen(0, '127.0.0.1', () => resolve(ports.push(server.address().port))))
const answer = (request, response) => response.end('hello')
;(async () => {
  for (let i = 0; i < ${count}; i++) {
    const server = require('node:http').createServer({ keepAliveTimeout: 600000 }, answer)
    await listening(server)
  }
  await listening(require('node:net').createServer(socket => socket.on('error', () => {}).pipe(socket)))
  console.log(ports.join(' '))
})()
process.stdin.on('end', () => process.exit(0)).resume()`

/** Speaks HTTP inside TLS with itself. */
const tlsScript = `
import socket, ssl, sys, threading, time
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(('127.0.0.1', 0))
port = listener.getsockname()[1]
def serve():
    connection = context.wrap_socket(listener.accept()[0], server_side=True)
    while connection.recv(4096):
        connection.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\n\\r\\n')
def ask():
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    plain.check_hostname = False
    plain.verify_mode = ssl.CERT_NONE
    connection = plain.wrap_socket(socket.create_connection(('127.0.0.1', port)))
    while True:
        connection.sendall(b'GET / HTTP/1.1\\r\\nhost: here\\r\\n\\r\\n')
        connection.recv(4096)
        time.sleep(0.2)
for work in (serve, ask):
    threading.Thread(target=work, daemon=True).start()
print(port, flush=True)
sys.stdin.read()`

const node = (count: number) => Peer.start(process.execPath, ['-e', serverScript(count)])

async function ask(port: number, path = '/', agent: Agent | false = false): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, agent }, response => {
      response.resume().on('end', resolve)
    })
    call.on('error', reject).end()
  })
}

async function explain(agent: AgentProcess, target: string | number): Promise<ExplainDocument> {
  return agent.document<ExplainDocument>(`/ui/api/explain?target=${encodeURIComponent(target)}`)
}

/** Asks until the only subject has this cause, and `holds`. */
async function explained(
  agent: AgentProcess,
  target: string | number,
  cause: string,
  meanwhile: () => unknown = () => undefined,
  holds: (subject: Subject) => boolean = () => true,
): Promise<Subject> {
  let last: ExplainDocument | undefined
  await until(
    () => `${target} has the cause "${cause}": ${JSON.stringify(last, null, 1)}`,
    patienceMs,
    async () => {
      await meanwhile()
      last = await explain(agent, target)
      const [subject] = last.subjects
      return subject?.cause === cause && holds(subject)
    },
  )
  return last!.subjects[0]!
}

function lineOf({ steps: lines }: Subject, topic: string, pattern: RegExp) {
  const found = lines.find(line => line.topic === topic && pattern.test(line.text))
  assert.ok(found, `${topic} ${pattern}: ${JSON.stringify(lines, null, 1)}`)
  return found
}

let certificates: Certificates
let servers: Peer
let leftOut: Peer
let inTls: Peer
let telemetry: Telemetry

before(async () => {
  if (skip) return
  certificates = makeCertificates()
  shared.push(() => certificates.remove())
  const pair = [certificates.file('server.pem'), certificates.file('server.key')]
  servers = await node(3)
  leftOut = await node(1)
  inTls = await Peer.start('/usr/bin/python3', ['-c', tlsScript, ...pair])
  telemetry = await Telemetry.start()
  shared.push(() => telemetry.close())
})

async function startAgent(options: Parameters<typeof AgentProcess.start>[0]): Promise<AgentProcess> {
  const agent = await AgentProcess.start(options)
  open.push(() => agent.kill())
  return agent
}

test('what is not seen is explained, with its cause and what fixes it', { skip }, async () => {
  const [plain, excluded, old, echo] = servers.ports as [number, number, number, number]
  const [port] = leftOut.ports as [number]
  const before = new Agent({ keepAlive: true })
  open.push(() => before.destroy())
  await ask(old, '/', before)
  const agent = await startAgent({
    endpoint: `127.0.0.1:${await freePort()}`,
    readyStatus: 503,
    config: {
      discovery: { exclude: [{ open_ports: String(port) }, { exe_path: '*/libssl.so*' }] } as unknown as Tree,
      agent: {
        ebpf: { network: { exclude_ports: [excluded] } },
        discovery: {
          enabled: true,
          detect_kubernetes: false,
          detect_cloud: false,
          docker: { endpoint: '/nonexistent/docker.sock' },
        },
      },
    },
  })

  const left = await explained(agent, excluded, 'excluded_port')
  assert.equal(left.verdict, 'not_observed')
  assert.match(lineOf(left, 'selected', /exclude_ports has/).hint, new RegExp(`remove ${excluded} from`))

  const unselected = await explained(agent, port, 'not_selected')
  assert.match(lineOf(unselected, 'selected', /discovery\.exclude\[0\] matches/).hint, /open_ports: "\d+"/)
  assert.match(unselected.title, new RegExp(`^port ${port} → pid ${leftOut.child.pid} .*node`))

  const socket: Socket = connect(echo, '127.0.0.1')
  open.push(() => socket.destroy())
  const unknown = await explained(agent, echo, 'unknown_protocol', () => socket.write(Buffer.alloc(64, 7)))
  assert.match(lineOf(unknown, 'seen', /no known protocol/).hint, /http1, .*redis/)

  const tls = await explained(agent, inTls.ports[0]!, 'tls_without_symbols')
  lineOf(tls, 'tls', /libssl\.so.*excluded by the configuration/)
  assert.notEqual(lineOf(tls, 'seen', /TLS traffic through .* cannot be decoded/).hint, '')

  const early = await explained(agent, old, 'started_before')
  assert.match(lineOf(early, 'seen', /older than svc/).hint, /next request/)

  const nobody = await explained(agent, 'no-such-shop', 'container_not_visible')
  assert.equal(nobody.pid, 0)
  assert.match(lineOf(nobody, 'selected', /Docker.*\/nonexistent\/docker\.sock/).hint, /./)

  const down = await explained(agent, plain, 'endpoint_down', () => ask(plain))
  assert.equal(down.verdict, 'limited')
  assert.match(lineOf(down, 'export', /export to .* failed/).hint, /svc doctor/)

  // Old connections are seen from their next request on.
  await explained(agent, old, 'endpoint_down', () => ask(old, '/', before))

  const none = await explain(agent, `port:${await freePort()}`)
  assert.deepEqual(none.subjects, [])
  assert.match(none.hint, /nothing listens on TCP port \d+; the nearest ports .* are \d+/)
})

test('where spans are lost on their way is told, and that none are', { skip }, async () => {
  const [port] = servers.ports as [number]
  const sampling = (ratio: number): Tree => ({ ratio, always_errors: false, always_slow: false })
  const network = (ratio: number): Tree => ({ agent: { ebpf: { network: { sampling: sampling(ratio) } } } })
  const discovery = { instrument: [{ open_ports: servers.ports.join(',') }] } as unknown as Tree
  const endpoint = telemetry.endpoint
  const agent = await startAgent({ endpoint, config: { discovery, ...network(1) } })
  const reload = async (config: Tree) => {
    agent.configure(config)
    await new Promise<void>((resolve, reject) => {
      const call = request(
        { host: '127.0.0.1', port: agent.port, path: '/admin/reload', method: 'POST' },
        response => {
          assert.equal(response.statusCode, 200)
          response.resume().on('end', resolve)
        },
      )
      call.on('error', reject).end()
    })
  }
  const several = async () => {
    for (let i = 0; i < 20; i++) await ask(port, `/${i}`)
  }

  await several()
  // Spans are counted when they are made, calls when they are exported.
  const isSeen = ({ steps: lines }: Subject) =>
    lines.some(({ topic, text }) => topic === 'seen' && /^[1-9]\d* calls? on port/.test(text))
  const fine = await explained(agent, port, '', () => ask(port), isSeen)
  assert.equal(fine.verdict, 'observed')
  lineOf(fine, 'export', new RegExp(`^to ${endpoint}, `))
  assert.equal((await explain(agent, servers.child.pid!)).subjects[0]!.pid, servers.child.pid)
  assert.match((await explain(agent, 'nodf')).hint, /did you mean node\?/)

  const unselected = await explained(agent, leftOut.ports[0]!, 'not_selected')
  const selected = lineOf(
    unselected,
    'selected',
    /discovery\.instrument\[0\]\.open_ports is [\d,]+; this process/,
  )
  assert.match(selected.text, new RegExp(`listens on .*${leftOut.ports[0]}`))

  await reload(network(0))
  const sampled = await explained(agent, port, 'sampled', several)
  assert.match(lineOf(sampled, 'spans', /ratio is 0/).hint, /raise .*sampling\.ratio/)

  const limits = { rate: { enabled: true, traces_per_second: 1, burst: 1 } }
  await reload({ ...network(1), pipeline: { limits } })
  const limited = await explained(agent, port, 'rate_limited', several)
  assert.match(lineOf(limited, 'spans', /traces_per_second \(1\)/).hint, /raise pipeline\.limits/)

  await reload({
    ...network(1),
    otlp: { endpoint: `127.0.0.1:${await freePort()}`, compression: 'none' },
    queues: { traces: { mem_limit: '1MiB' } },
  })
  const keep = new Agent({ keepAlive: true, maxSockets: 8 })
  open.push(() => keep.destroy())
  const path = `/${'long'.repeat(100)}`
  const full = await explained(agent, port, 'queue_full', () =>
    Promise.all(Array.from({ length: 500 }, () => ask(port, path, keep))),
  )
  lineOf(full, 'export', /the queue is full: \d+ spans/)
  lineOf(full, 'export', /export to .* failed/)
})

test('why nothing is traced at all is told of each process', { skip }, async () => {
  const [port] = servers.ports as [number]
  const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
  const weak = await startAgent({ wrapper: asNobody, readyStatus: 503 })
  // Nobody may look at descriptors of root: the process is told by its number.
  const { subjects } = await explain(weak, servers.child.pid!)
  assert.equal(subjects[0]!.cause, 'permission', JSON.stringify(subjects))
  assert.match(lineOf(subjects[0]!, 'probes', /CAP_BPF/).hint, /root/)
  const hidden = await explained(weak, port, 'permission')
  assert.equal(hidden.pid, 0)
  assert.match(lineOf(hidden, 'selected', /no process that svc can see/).hint, /SYS_PTRACE/)
  await weak.kill()

  const withoutBtf = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', 'sh']
  const old = await startAgent({ wrapper: withoutBtf, readyStatus: 503 })
  const lacking = await explained(old, port, 'kernel_feature_missing')
  assert.match(lineOf(lacking, 'probes', /btf\/vmlinux/).hint, /BTF/)
  assert.equal(lacking.verdict, 'not_observed')
})

test('processes that a pid namespace of its own hides from svc are told of', { skip }, async () => {
  const wrapper = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']
  const agent = await startAgent({ wrapper })
  const hidden = await explained(agent, servers.ports[0]!, 'container_not_visible')
  assert.equal(hidden.pid, 0)
  assert.match(lineOf(hidden, 'selected', /its own pid namespace/).hint, /--pid=host/)
})
