import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Answers /status/NNN with that status and a body of five bytes. */
const serverScript = `
const server = require('node:http').createServer((request, response) => {
  response.statusCode = Number(request.url.split('/')[2] ?? 200)
  response.end('hello')
})
server.keepAliveTimeout = 60000
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit(0)).resume()`

/** Reads lines "port count path" and says "done" when the last answer to each came, over 8 connections. */
const clientScript = `
const { Agent, get } = require('node:http')
const agent = new Agent({ keepAlive: true, maxSockets: 8 })
require('node:readline').createInterface(process.stdin).on('line', line => {
  const [port, count, path] = line.split(' ')
  let left = Number(count)
  for (let i = 0; i < count; i++)
    get({ port, host: '127.0.0.1', path, agent }, response => {
      response.resume().on('end', () => { if (--left === 0) console.log('done') })
    })
}).on('close', () => process.exit(0))`

/** A program of its own process that is talked to line by line. It ends with its input. */
class Peer {
  readonly child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(script: string, wrapper: readonly string[]) {
    const [command, ...args] = [...wrapper, process.execPath, '-e', script]
    this.child = spawn(command!, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface(this.child.stdout!)[Symbol.asyncIterator]()
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next()
    if (done) throw new Error('the peer has ended')
    return value
  }

  say(line: string): void {
    this.child.stdin!.write(`${line}\n`)
  }

  async end(): Promise<void> {
    const ended = new Promise(resolve => this.child.once('exit', resolve))
    this.child.stdin!.end()
    await ended
  }
}

/** An HTTP server and clients of it, in processes of their own, as a capture does not see the one that it runs in. */
export interface Peers {
  readonly port: number
  readonly serverPid: number
  readonly clientPid: number
  /** Requests of /status/NNN; resolves with the last answer. */
  requests(count: number, path: string): Promise<void>
  /** The same from a process that has no connection yet. */
  freshRequests(count: number, path: string): Promise<void>
  close(): Promise<void>
}

/** `wrapper`: a command that runs the one which follows, in its own process. */
export async function startPeers(wrapper: readonly string[] = []): Promise<Peers> {
  const server = new Peer(serverScript, wrapper)
  const client = new Peer(clientScript, wrapper)
  const port = Number(await server.line())
  const ask = async (peer: Peer, count: number, path: string): Promise<void> => {
    peer.say(`${port} ${count} ${path}`)
    const answer = await peer.line()
    if (answer !== 'done') throw new Error(`the client said "${answer}"`)
  }
  return {
    port,
    serverPid: server.child.pid!,
    clientPid: client.child.pid!,
    requests: (count, path) => ask(client, count, path),
    freshRequests: async (count, path) => {
      const fresh = new Peer(clientScript, wrapper)
      await ask(fresh, count, path)
      await fresh.end()
    },
    close: async () => {
      await client.end()
      await server.end()
    },
  }
}
