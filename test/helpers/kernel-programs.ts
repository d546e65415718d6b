// Programs that are watched in a machine of its own; run there as one file. The first argument says which: servers that
// answer each other, or the client that asks them. Each answers a line of standard input by a line, and ends with it.

import { readFileSync, statfsSync } from 'node:fs'
import { Agent, createServer, get, type RequestOptions } from 'node:http'
import { createServer as createTlsServer, get as getInTls } from 'node:https'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { ports } from './kernel-report.ts'

const say = (text: string): void => void process.stdout.write(`${text}\n`)

/** Asks one way of asking, and resolves when the answer is whole. */
function fetched(how: typeof get, options: RequestOptions & { ca?: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    how({ host: '127.0.0.1', ...options }, response => {
      if (response.statusCode !== 200)
        reject(new Error(`${options.path} was answered by ${response.statusCode}`))
      response.resume().on('end', resolve)
    }).on('error', reject)
  })
}

/** Answers when the server behind it has. */
function front(): void {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  createServer(async (_, response) => {
    await fetched(get, { agent, port: ports.back, path: '/stock' })
    response.end('x'.repeat(2000))
  }).listen(ports.front, '127.0.0.1', () => say('ready'))
}

/** The server behind; one that speaks TLS, and one that speaks Redis. */
function back(): void {
  const answer = { key: readFileSync('/opt/tls/server.key'), cert: readFileSync('/opt/tls/server.pem') }
  const listening = [
    createServer((_, response) => response.end('y'.repeat(3000))).listen(ports.back, '127.0.0.1'),
    createTlsServer(answer, (_, response) => response.end('z'.repeat(500))).listen(ports.tls, '127.0.0.1'),
    createTcpServer(socket => {
      // A command is `*2 $3 GET $N key`, and the client waits for each answer.
      socket.on('data', () => socket.write('$5\r\nvalue\r\n')).on('error', () => {})
    }).listen(ports.redis, '127.0.0.1'),
  ]
  let left = listening.length
  for (const server of listening) server.once('listening', () => --left || say('ready'))
}

async function askRedis(count: number): Promise<void> {
  const socket = await new Promise<Socket>(resolve => {
    const made: Socket = connect(ports.redis, '127.0.0.1', () => resolve(made))
  })
  for (let i = 0; i < count; i++) {
    const answered = new Promise(resolve => socket.once('data', resolve))
    socket.write('*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n')
    await answered
  }
  socket.destroy()
}

/** `http 40`: half over connections of their own, half over a kept one. */
async function ask(line: string): Promise<void> {
  const [what, text] = line.split(' ')
  const count = Number(text)
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  if (what === 'redis') await askRedis(count)
  if (what === 'statfs') for (let i = 0; i < count; i++) statfsSync('/')
  for (let i = 0; i < count && what === 'http'; i++)
    await fetched(get, { agent: i < count / 2 ? false : kept, port: ports.front, path: `/items/${i}` })
  const ca = readFileSync('/opt/tls/ca.pem', 'utf8')
  for (let i = 0; i < count && what === 'tls'; i++)
    await fetched(getInTls, { agent: false, port: ports.tls, path: '/secret', ca })
  kept.destroy()
  say('done')
}

function client(): void {
  createInterface(process.stdin).on('line', line => {
    ask(line).catch(error => say(`failed: ${error}`))
  })
  say('ready')
}

;({ front, back, client })[process.argv[2] as 'front']()
process.stdin.resume().once('end', () => process.exit(0))
