// owns: host
// reads: the tree
// The shell blocks of the pages, run beside a real agent.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ExitCode } from '../src/foundation/lib/start-error.ts'
import { AgentProcess } from './helpers/agent-process.ts'
import { withoutBpf } from './helpers/compile-bpf.ts'
import { blocksOf, type DocBlock, shellLines, userPages } from './helpers/doc-blocks.ts'
import { freePort, until } from './helpers/program.ts'
import { soak } from './helpers/soak.ts'

const root = join(import.meta.dirname, '..')
/** For a line that ends by itself, on a machine that is busy. */
const patienceMs = 60_000
const atOnce = 3

/** What goes on until somebody ends it: it is ended when it said something. */
const goesOn = /\bfollow=1|\bsvc (tap|top)\b/
/** They end with 1 where something is missing. */
const mayFind = /\bsvc (doctor|status)\b/

/** A service named shop that asks itself, and thinks about its answers. */
const shopScript = `const { createServer, get } = require('node:http')
const think = ms => { for (const end = Date.now() + ms; Date.now() < end; ); }
const server = createServer((_, answer) => { think(20); answer.end('ok') }).listen(0, '127.0.0.1', () => {
  const { port } = server.address()
  setInterval(() => get({ port, path: '/cart' }, answer => answer.resume()), 50)
  console.log(port)
})`

let agent: AgentProcess
let shop: ChildProcess
let shopPort: string
let directory: string
let metricsPort: number

before(async () => {
  if (withoutBpf !== false) return
  directory = mkdtempSync(join(tmpdir(), 'svc-docs-'))
  mkdirSync(join(directory, 'path'))
  symlinkSync(join(root, 'bin/svc'), join(directory, 'path/svc'))
  metricsPort = await freePort()
  agent = await AgentProcess.start({
    readyStatus: 503, // once an export has failed
    // Nobody is there, so that something waits in the queue.
    endpoint: `127.0.0.1:${await freePort()}`,
    config: {
      agent: {
        nodeexporter: { enabled: true, listen_address: `127.0.0.1:${metricsPort}` },
        profiling: { enabled: true },
        discovery: { enabled: true, detect_cloud: false },
        ebpf: { network: { sampling: { max_spans_per_second: 200 } } },
      },
      self_telemetry: { debug: true },
      pipeline: { export: { queue: { enabled: true, directory: join(directory, 'queue') } } },
    },
  })
  shop = spawn(process.execPath, ['-e', shopScript], {
    env: { ...process.env, OTEL_SERVICE_NAME: 'shop' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  shopPort = String(((await once(shop.stdout!, 'data')) as [Buffer])[0]).trim()
  await until('the shop is seen', 60_000, async () =>
    (await agent.get('/ui/api/overview')).text.includes('"shop"'),
  )
})

after(async () => {
  shop?.kill()
  await agent?.stop()
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
})

/** The line for the agent and the service of this test in place of those of the page. */
function here(line: string): string {
  const shorter = line.replace(/ -d \d\ds/, '').replace(/\bsvc profile\b/, 'svc profile -d 3s')
  return (soak ? line : shorter)
    .replaceAll('bin/svc', 'svc')
    .replaceAll('127.0.0.1:19090', `127.0.0.1:${agent.port}`)
    .replaceAll('127.0.0.1:9100', `127.0.0.1:${metricsPort}`)
    .replaceAll('/run/svc/svc.sock', agent.socket)
    .replaceAll(/\b8080\b/g, shopPort)
    .replaceAll(/\b4711\b/g, String(shop.pid))
    .replaceAll(/--to FILE/g, '--to queue.json')
}

interface Ended {
  readonly code: number | null
  /** For it would have gone on. */
  readonly wasEnded: boolean
  readonly output: string
}

async function run(line: string, cwd: string): Promise<Ended> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', here(line)], {
    cwd,
    detached: true, // a group of its own, that ends as a whole
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      PATH: `${join(directory, 'path')}:${process.env.PATH}`,
      SVC_CONFIG_FILE: agent.file,
      NO_COLOR: '1',
    },
  })
  let output = ''
  let wasEnded = false
  const end = (signal: NodeJS.Signals) => {
    wasEnded = signal === 'SIGINT'
    try {
      process.kill(-child.pid!, signal)
    } catch {
      // It has just ended by itself.
    }
  }
  const patience = setTimeout(end, patienceMs, 'SIGKILL')
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      if (output === '' && goesOn.test(line)) setTimeout(end, 200, 'SIGINT').unref()
      if (output.length < 1 << 20) output += text
    })
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(patience)
  return { code, wasEnded, output }
}

/** What they end with where they found something. */
const finding: readonly (number | null)[] = [ExitCode.general, ExitCode.exporting]

/** What a command says of an agent that is out of breath. */
const busy = /seen in \d+ s|no answer within/

function isGood(line: string, { code, wasEnded }: Ended): boolean {
  return code === 0 || wasEnded || (mayFind.test(line) && finding.includes(code))
}

/** What is wrong with a block; '' for nothing. */
async function faultOf({ place, text, output }: DocBlock): Promise<string> {
  const cwd = mkdtempSync(join(directory, 'block-'))
  let said = ''
  for (const line of shellLines(text)) {
    let ended = await run(line, cwd)
    // All blocks run at once, beside the agent.
    if (!isGood(line, ended) && busy.test(ended.output)) ended = await run(line, cwd)
    said += ended.output
    if (!isGood(line, ended))
      return `${place}: ${here(line)}: exit ${ended.code}: ${ended.output.slice(-400)}`
  }
  const lacking = output.split('\n').find(promised => !isPromised(promised, said))
  return lacking === undefined ? '' : `${place}: no line is like “${lacking}”:\n${said.slice(0, 2000)}`
}

/** Whether a line stands in the output; `…` stands for anything. */
function isPromised(line: string, output: string): boolean {
  const parts = line.split('…').map(part => part.trim())
  return output.split('\n').some(said => {
    let at = 0
    for (const part of parts) {
      const found = said.indexOf(part, at)
      if (found < 0) return false
      at = found + part.length
    }
    return true
  })
}

const shellBlocks = userPages()
  .flatMap(blocksOf)
  .filter(({ language }) => language === 'sh')

test('the shell blocks of the pages do what they say, beside a running agent', {
  skip: withoutBpf,
}, async () => {
  const waiting = shellBlocks.filter(({ notRun }) => notRun === '')
  assert.ok(waiting.length > 5)
  const faults: string[] = []
  const work = async () => {
    for (let block = waiting.shift(); block !== undefined; block = waiting.shift()) {
      const fault = await faultOf(block)
      if (fault !== '') faults.push(fault)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  assert.deepEqual(faults, [])
})
