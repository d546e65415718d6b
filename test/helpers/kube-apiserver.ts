// A real API server of Kubernetes on an etcd of its own, where both are found: SVC_KUBE_APISERVER and SVC_ETCD, or the
// PATH. There is no kubelet and no controller: pods are what is written.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Certificates, makeCertificates } from './certificates.ts'
import { freePort, until } from './program.ts'

const apiserver = find('kube-apiserver', process.env.SVC_KUBE_APISERVER)
const etcd = find('etcd', process.env.SVC_ETCD)

export const withoutKubeApiserver: string | false =
  apiserver !== '' && etcd !== ''
    ? false
    : 'a real API server needs kube-apiserver and etcd in the PATH, or SVC_KUBE_APISERVER and SVC_ETCD'

const readyMs = 120_000

function find(name: string, given: string | undefined): string {
  if (given !== undefined) return existsSync(given) ? given : ''
  return String(spawnSync('sh', ['-c', `command -v ${name}`]).stdout ?? '').trim()
}

export class KubeApiserver {
  readonly port: number
  readonly certificates: Certificates
  readonly #directory: string
  readonly #etcdPort: number
  readonly #etcd: ChildProcess
  #server: ChildProcess | undefined

  private constructor(directory: string, certificates: Certificates, ports: readonly number[]) {
    const [port = 0, etcdPort = 0, peerPort = 0] = ports
    this.port = port
    this.certificates = certificates
    this.#directory = directory
    this.#etcdPort = etcdPort
    const client = `http://127.0.0.1:${etcdPort}`
    const peer = `http://127.0.0.1:${peerPort}`
    const args = {
      'data-dir': join(directory, 'etcd'),
      'listen-client-urls': client,
      'advertise-client-urls': client,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': `default=${peer}`,
    }
    this.#etcd = spawnQuietly(etcd, args)
  }

  /** `admin` may do all, `agent` only what is granted to it. */
  static async start(): Promise<KubeApiserver> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-kube-apiserver-'))
    const certificates = makeCertificates()
    const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    writeFileSync(join(directory, 'sa.key'), key.export({ type: 'pkcs1', format: 'pem' }))
    writeFileSync(join(directory, 'tokens.csv'), 'admin,admin,1,system:masters\nagent,agent,2\n')
    const ports = [await freePort(), await freePort(), await freePort()]
    const server = new KubeApiserver(directory, certificates, ports)
    try {
      await server.startServer()
    } catch (error) {
      await server.close()
      throw error
    }
    return server
  }

  async startServer(): Promise<void> {
    const directory = this.#directory
    const args = {
      'etcd-servers': `http://127.0.0.1:${this.#etcdPort}`,
      'allow-privileged': 'true',
      'service-account-issuer': 'https://svc.example.com',
      'service-account-key-file': join(directory, 'sa.key'),
      'service-account-signing-key-file': join(directory, 'sa.key'),
      'token-auth-file': join(directory, 'tokens.csv'),
      'authorization-mode': 'RBAC',
      'secure-port': String(this.port),
      'bind-address': '127.0.0.1',
      'tls-cert-file': this.certificates.file('server.pem'),
      'tls-private-key-file': this.certificates.file('server.key'),
      'cert-dir': join(directory, 'certs'),
      'disable-admission-plugins': 'ServiceAccount',
      'service-cluster-ip-range': '10.0.0.0/24',
    }
    this.#server = spawnQuietly(apiserver, args)
    const namespaces = ['default', 'kube-system']
    await until('the API server is ready', readyMs, async () => {
      const found = await Promise.all(
        namespaces.map(name => this.status('GET', `/api/v1/namespaces/${name}`)),
      )
      return (await this.status('GET', '/readyz')) === 200 && found.every(status => status === 200)
    })
  }

  async stopServer(): Promise<void> {
    await ended(this.#server)
  }

  async close(): Promise<void> {
    await ended(this.#server)
    await ended(this.#etcd)
    this.certificates.remove()
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }

  /** As `admin`. Rejects where the server does not take it. */
  async ask(method: string, path: string, body?: object): Promise<Record<string, never>> {
    const { status, text } = await this.#send(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return JSON.parse(text)
  }

  /** How often pods were asked for (`LIST`, `WATCH`) since it runs, its own requests, which are no JSON, left out. */
  async asked(verb: string): Promise<number> {
    const { text } = await this.#send('GET', '/metrics')
    const lines = text.split('\n').filter(line => line.startsWith('apiserver_request_total{'))
    const wanted = ['resource="pods"', `verb="${verb}"`, 'contentType="application/json"', 'scope="cluster"']
    const ours = lines.filter(line => wanted.every(each => line.includes(each)))
    return ours.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }

  /** 0: no answer. */
  async status(method: string, path: string): Promise<number> {
    return (await this.#send(method, path).catch(() => ({ status: 0 }))).status
  }

  #send(method: string, path: string, body?: object): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const call = request(
        {
          host: '127.0.0.1',
          port: this.port,
          path,
          method,
          agent: false,
          ca: this.certificates.text('ca.pem'),
          headers: { authorization: 'Bearer admin', 'content-type': type },
        },
        answer => {
          const pieces: Buffer[] = []
          answer.on('data', piece => pieces.push(piece))
          answer.once('end', () =>
            resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() }),
          )
          answer.once('error', reject)
        },
      )
      call.once('error', reject)
      call.end(body && JSON.stringify(body))
    })
  }
}

function spawnQuietly(program: string, args: Readonly<Record<string, string>>): ChildProcess {
  return spawn(
    program,
    Object.entries(args).map(([name, value]) => `--${name}=${value}`),
    { stdio: 'ignore' },
  )
}

async function ended(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise(resolve => child.once('exit', resolve))
  child.kill('SIGKILL')
  await exited
}
