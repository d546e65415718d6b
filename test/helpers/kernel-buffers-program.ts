// Runs in a machine of its own, as one file: captures what two programs say to each other by the tracepoints of system
// calls, and prints the operations that it read. The first argument is a port, the second `perf` or `ring`.

import { type ChildProcess, spawn } from 'node:child_process'
import { release } from 'node:os'
import type { Segment } from '../../src/foundation/model/stream.ts'
import { SyscallCapture } from '../../src/signals/capture/syscall-capture.ts'
import { http1 } from '../../src/signals/traces/protocols/http1.ts'
import { Streams } from '../../src/signals/traces/tracing/streams.ts'
import { guestNative, startLoopback } from './guest-loopback.ts'

/** What it prints. */
export interface BuffersReport {
  readonly release: string
  readonly startMs: number
  readonly absent: readonly string[]
  readonly ringSize: number
  readonly selfPid: number
  readonly pid: number
  readonly ended: readonly string[]
  readonly counters: Readonly<Record<string, number>>
}

const [port = '', buffers = ''] = process.argv.slice(2)
const native = guestNative()

function run(script: string): ChildProcess {
  return spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
}

const word = (child: ChildProcess) =>
  new Promise<void>(resolve => child.stdout!.once('data', () => resolve()))

async function measure(): Promise<void> {
  await startLoopback(native)
  const server = run(
    `require('http').createServer((q, r) => { r.statusCode = q.url === '/absent' ? 404 : 200; r.end('x'.repeat(20000)) })
   .listen(${port}, '127.0.0.1', () => console.log('ready'))`,
  )
  await word(server)
  const ended: string[] = []
  const streams = new Streams([http1.create({ route: (_operation, path) => path })], {
    begin: () => {},
    end: ({ connection: { server, localPort, peerPort }, call, status }) => {
      const known = localPort > 0 && peerPort > 0 ? 'known' : 'unknown'
      ended.push(`${server ? 'server' : 'client'} ${call.name} ${status} ${known}`)
    },
    abandon: () => {},
    lost: () => {},
    refuse: () => {},
  })
  const started = performance.now()
  const capture = new SyscallCapture(
    native,
    { name: 'syscalls' },
    {
      ringBytes: 2 ** 20,
      perfBytes: 2 ** 20,
      backlogBytes: 0,
      captureBytes: 1024,
      protocols: ['http1'],
      includePorts: [Number(port)],
      excludePorts: [],
      maxPerSecond: 0,
      alwaysErrors: true,
      alwaysSlow: true,
      slowNs: 1e9,
      boundsNs: [],
      ...(buffers === 'perf' && { perf: true }),
    },
    {
      begin: () => {},
      end: () => {},
      counted: () => {},
      skipped: () => {},
      thread: () => {},
      segment: (segment: Segment) => streams.segment(segment),
    },
  )
  const startMs = Math.round(performance.now() - started)
  const client = run(
    `const ask = (n, path) => n && require('http').get({ port: ${port}, host: '127.0.0.1', path, agent: false }, r =>
     r.resume().on('end', () => n > 1 ? ask(n - 1, path) : path === '/absent' ? console.log('done') : ask(1, '/absent')))
   ask(5, '/item')`,
  )
  await word(client)
  for (let looks = 0; looks < 200 && ended.length < 12; looks++) {
    await new Promise(resolve => setTimeout(resolve, 100))
    capture.drain()
  }
  const counters = capture.counters()
  const { absent, ringSize, selfPid } = capture
  capture.close()
  const { pid } = process
  console.log(
    JSON.stringify({ release: release(), startMs, absent, ringSize, selfPid, pid, ended, counters }),
  )
  server.kill()
  client.kill()
}

measure().catch(error => {
  console.error(error)
  process.exit(1)
})
