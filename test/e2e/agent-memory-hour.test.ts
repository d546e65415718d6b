// owns: processor
// An hour of 10,000 requests a second and 150 short processes a second, while the receiver is away.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { freePort, Program, pause } from '../helpers/program.ts'
import { onlyInSoak } from '../helpers/soak.ts'
import { startNginx } from '../helpers/web-servers.ts'

/** HOUR_MINUTES makes it shorter, for a look at what grows. */
const minutes = Number(process.env.HOUR_MINUTES ?? 60)
const settledMinutes = Math.min(10, minutes / 3)
const rates = { requests: 10_000, processes: 150 }
/** Of the least in five minutes: what the collector has not come to is garbage. Half a byte for each request is 15 MiB. */
const boundMiB = 8
const everyMs = 10_000
const connections = 50
const withoutLoad =
  spawnSync('h2load', ['--version']).status === 0 ? false : 'takes h2load, of nghttp2-client'

/** How many requests the server at `port` has answered (stub_status). */
async function served(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/served`)).text()
  return Number(/\d+ \d+ (\d+)/.exec(text)?.[1])
}

/** MiB without a file behind them, by what they are: `[heap]` is malloc's, `rw` mostly V8's. */
function anonymousByPlace(pid: number): Map<string, number> {
  const places = new Map<string, number>()
  let place = ''
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'latin1').split('\n')) {
    const head = /^[0-9a-f]+-[0-9a-f]+ (\S+) \S+ \S+ \d+ *(.*)$/.exec(line)
    if (head) place = head[2] === '' ? head[1]! : head[2]!
    const found = /^Anonymous: +(\d+) kB/.exec(line)
    if (found && found[1] !== '0') places.set(place, (places.get(place) ?? 0) + Number(found[1]) / 1024)
  }
  return places
}

test('in an hour of load with the receiver away the memory of the agent stands still', {
  skip: onlyInSoak || withoutBpf || withoutLoad,
}, async t => {
  const close: (() => unknown)[] = []
  t.after(async () => {
    for (const each of close.toReversed()) await each()
  })
  const nginx = await startNginx(await freePort())
  close.push(() => nginx.close())
  const agent = await AgentProcess.start({
    endpoint: `127.0.0.1:${await freePort()}`,
    readyStatus: 503,
    defaults: true,
    shipped: true,
  })
  close.push(() => agent.stop())
  const shortLived = await Program.start<object>('short-lived.py', { rate: rates.processes })
  close.push(() => shortLived.close())
  const seconds = minutes * 60
  const load = spawn(
    'h2load',
    ['--h1', `-c${connections}`, `--rps=${rates.requests / connections}`, `-D${seconds + 60}`].concat(
      `http://127.0.0.1:${nginx.port}/load`,
    ),
    { stdio: 'ignore' },
  )
  const ended = once(load, 'exit')
  close.push(async () => {
    load.kill()
    await ended
  })
  const measured: { readonly minute: number; readonly places: Map<string, number>; readonly sum: number }[] =
    []
  const began = performance.now()
  let requests = await served(nginx.port)
  const atBegin = requests
  while (performance.now() - began < seconds * 1000) {
    await pause(everyMs)
    const before = requests
    requests = await served(nginx.port)
    // A busy host is slower at times. Where the load has ended, the memory stands still for no reason.
    assert.ok(
      requests - before > everyMs / 10,
      `the load fell to ${requests - before} requests in ${everyMs} ms`,
    )
    const places = anonymousByPlace(agent.pid)
    const sum = [...places.values()].reduce((all, one) => all + one, 0)
    measured.push({ minute: (performance.now() - began) / 60_000, places, sum })
  }
  const window = Math.min(5, settledMinutes)
  const least = (from: number, to: number) =>
    measured.filter(({ minute }) => minute >= from && minute < to).reduce((a, b) => (b.sum < a.sum ? b : a))
  const first = least(settledMinutes, settledMinutes + window)
  const last = least(minutes - window, minutes + 1)
  const grown = last.sum - first.sum
  const each = [...last.places]
    .map(([place, size]) => ({ place, by: size - (first.places.get(place) ?? 0) }))
    .filter(({ by }) => Math.abs(by) >= 0.5)
    .map(({ place, by }) => `${place} ${by.toFixed(1)}`)
  const course = measured.filter((_, i) => i % 30 === 0).map(({ sum }) => sum.toFixed(0))
  const rate = (requests - atBegin) / ((performance.now() - began) / 1000)
  t.diagnostic(`${rate.toFixed(0)} requests a second`)
  assert.ok(rate > rates.requests / 2, `this host got no further than ${rate.toFixed(0)} requests a second`)
  const said = `${grown.toFixed(1)} MiB more (${each.join(', ')}); every five minutes: ${course.join(' ')} MiB`
  t.diagnostic(said)
  assert.ok(grown < boundMiB, `after ${settledMinutes} minutes the agent took ${said}`)
})
