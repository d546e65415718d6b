// owns: process
// P1 and P4 of docs/develop/pipeline.md: a process that is killed loses nothing that its queue had accepted, and sends
// again only what it had sent a moment before.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { soak } from '../helpers/soak.ts'

const cycles = soak ? 1000 : 20
/** What arrived this long before the end is not sent again: the cursor follows in a tenth of a second, and disks stall. */
const lateMs = 5000
/** How long the first one lives, so that there is such. The others live for a fifth of a second at most. */
const longMs = 2 * lateMs

const shipper = join(import.meta.dirname, '..', 'helpers', 'log-shipper.ts')

test(`${cycles} times killed under load, nothing accepted is lost`, {
  timeout: cycles * 3000 + 120_000,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-kill-'))
  const receiver = await startReceiver()
  t.after(async () => {
    await receiver.close()
    rmSync(directory, { recursive: true })
  })
  let outage = false
  receiver.answer = (_, lines) => {
    if (outage || Math.random() < 0.1) return { kind: 'refuse', code: 14 }
    for (const { body } of lines) take(body as string)
    return { kind: 'ok' }
  }

  /** When each record first arrived, and when who made it was killed. */
  const arrived = new Map<string, number>()
  const killed = new Map<string, number>()
  let duplicates = 0
  const strays: string[] = []
  /** How long before the end it arrived; of those that live it is not known. */
  const aheadMs = (id: string) => killed.get(id.slice(0, id.indexOf(':')))! - arrived.get(id)!
  const take = (id: string): void => {
    if (!arrived.has(id)) arrived.set(id, performance.now())
    else {
      duplicates++
      if (aheadMs(id) > lateMs) strays.push(`${id} arrived ${Math.round(aheadMs(id))} ms before the end`)
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
    const kill = () => {
      killed.set(prefix, performance.now())
      child.kill('SIGKILL')
    }
    let timer: NodeJS.Timeout | undefined
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
      // Its life begins when it works; some are killed before.
      timer ??= setTimeout(kill, lifeMs)
    })
    const early = Math.random() < 0.1 && lifeMs < longMs ? setTimeout(kill, Math.random() * 400) : undefined
    const [code] = await new Promise<[number | null]>(resolve => child.once('close', code => resolve([code])))
    clearTimeout(timer)
    clearTimeout(early)
    assert.ok(code === null || code === 0, `it ended by itself with ${code}: ${faults}`)
    return Number(said.slice(0, said.lastIndexOf('\n')).split('\n').at(-1) || 0)
  }

  const obligations: [prefix: string, accepted: number][] = []
  for (let cycle = 0; cycle < cycles; cycle++) {
    outage = cycle > 0 && Math.random() < 0.3
    const prefix = String(cycle)
    obligations.push([prefix, await run(prefix, cycle === 0 ? longMs : Math.random() * 200)])
  }
  outage = false
  // The last one, which makes nothing, sends what all the others left.
  await run('-', 120_000)

  let promised = 0
  const lost: string[] = []
  for (const [prefix, accepted] of obligations) {
    promised += accepted
    for (let i = 0; i < accepted; i++) if (!arrived.has(`${prefix}:${i}`)) lost.push(`${prefix}:${i}`)
  }
  const settled = [...arrived.keys()].filter(id => aheadMs(id) > lateMs).length
  t.diagnostic(
    `${promised} accepted, ${arrived.size} arrived, ${duplicates} of them twice, ${settled} long before an end`,
  )
  assert.deepEqual(lost.slice(0, 10), [], `${lost.length} of ${promised} were lost`)
  assert.deepEqual(strays.slice(0, 10), [])
  assert.ok(settled > 0)
  const ofOthers = promised - obligations[0]![1]
  assert.ok(ofOthers > cycles * 50, `only ${ofOthers} records were accepted`)
})
