// P1 and P4 of docs/develop/pipeline.md: a process that is killed loses nothing that its queue had accepted, and sends
// again only what it had sent a moment before.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startReceiver } from '../helpers/otlp-receiver.ts'

const soak = process.env.SVC_SOAK === '1'
const cycles = Number(process.env.SVC_KILL_CYCLES ?? (soak ? 1000 : 200))
/** Acknowledged at least this long before the end, a record is not sent again: what a cursor may be late, and room. */
const lateMs = 1000

const shipper = join(import.meta.dirname, '..', 'helpers', 'log-shipper.ts')

test(`${cycles} times killed under load, nothing accepted is lost`, {
  timeout: cycles * 3000 + 120_000,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-kill-'))
  const receiver = await startReceiver({ keep: true })
  t.after(async () => {
    await receiver.close()
    rmSync(directory, { recursive: true })
  })
  let outage = false
  receiver.answer = () => (outage || Math.random() < 0.1 ? { kind: 'refuse', code: 14 } : { kind: 'ok' })

  /** When each record first arrived, and how often one arrived again too late after. */
  const arrived = new Map<string, number>()
  const killed = new Map<string, number>()
  let duplicates = 0
  const strays: string[] = []
  const look = (): void => {
    const now = performance.now()
    for (const { body } of receiver.lines.splice(0)) {
      const id = body as string
      const before = arrived.get(id)
      if (before === undefined) arrived.set(id, now)
      else {
        duplicates++
        const end = killed.get(id.slice(0, id.indexOf(':'))) ?? now
        if (before < end - lateMs) strays.push(`${id} arrived ${Math.round(end - before)} ms before the end`)
      }
    }
  }

  /** Runs one and kills it after a while; resolves with how many records it is known to have accepted. */
  async function run(prefix: string, lifeMs: number): Promise<number> {
    const child = spawn(process.execPath, [shipper, receiver.endpoint, directory, prefix], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    })
    let said = ''
    let faults = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (faults += text))
    let timer: NodeJS.Timeout | undefined
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
      // Its life begins when it works; some are killed before.
      timer ??= setTimeout(() => child.kill('SIGKILL'), lifeMs)
    })
    const early =
      Math.random() < 0.1 && lifeMs < 60_000
        ? setTimeout(() => child.kill('SIGKILL'), Math.random() * 400)
        : undefined
    const [code] = await new Promise<[number | null]>(resolve => child.once('close', code => resolve([code])))
    clearTimeout(timer)
    clearTimeout(early)
    assert.ok(code === null || code === 0, `it ended by itself with ${code}: ${faults}`)
    return Number(said.slice(0, said.lastIndexOf('\n')).split('\n').at(-1) || 0)
  }

  const obligations: [prefix: string, accepted: number][] = []
  for (let cycle = 0; cycle < cycles; cycle++) {
    outage = Math.random() < 0.3
    const prefix = String(cycle)
    const accepted = await run(prefix, Math.random() * 200)
    killed.set(prefix, performance.now())
    obligations.push([prefix, accepted])
    look()
  }
  outage = false
  // The last one, which makes nothing, sends what all the others left.
  await run('-', 120_000)
  look()

  let promised = 0
  const lost: string[] = []
  for (const [prefix, accepted] of obligations) {
    promised += accepted
    for (let i = 0; i < accepted; i++) if (!arrived.has(`${prefix}:${i}`)) lost.push(`${prefix}:${i}`)
  }
  t.diagnostic(`${promised} accepted, ${arrived.size} arrived, ${duplicates} of them twice`)
  assert.deepEqual(lost.slice(0, 10), [], `${lost.length} of ${promised} were lost`)
  assert.deepEqual(strays.slice(0, 10), [])
  assert.ok(promised > cycles * 50, `only ${promised} records were accepted`)
})
