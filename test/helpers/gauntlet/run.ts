// Attacks of the gauntlet by hand, one after the other, or all at once with --together:
//   node test/helpers/gauntlet/run.ts [--seconds N] [--together] [--receive] [--fresh] [NAME...]
// Prints what an agent with its defaults made of each. --fresh: an agent of its own for each. --receive: the receiver is
// there. Needs root.
import { parseArgs } from 'node:util'
import { pause } from '../program.ts'
import { Arena, type Seen } from './arena.ts'
import { attacks } from './attacks.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string' },
    together: { type: 'boolean', default: false },
    receive: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
  },
})
const chosen = attacks.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
const unknown = positionals.filter(name => !attacks.some(attack => attack.name === name))
if (unknown.length > 0) throw new Error(`there is no attack ${unknown.join(', ')}`)

function print(name: string, arena: Arena, seen: Seen, restMiB = 0): void {
  const { mostMiB, p99Ms, worstMs, worstOwnMs, waitedPercent, failures, alive } = seen
  const grown = (mostMiB - arena.idleMiB).toFixed(0)
  const life = alive ? 'lives' : 'DEAD '
  const memory = `idle ${arena.idleMiB.toFixed(0)} most ${mostMiB.toFixed(0)} (+${grown}) after ${restMiB.toFixed(0)} MiB`
  const health = `healthz p99 ${p99Ms} worst ${worstMs} ms, ${worstOwnMs.toFixed(0)} with a processor (${waitedPercent.toFixed(0)} % without), failed: ${failures.length} ${failures.slice(0, 5)}`
  for (const [attack, said] of arena.faults) console.log(`${attack} says: ${said.slice(-600)}`)
  arena.faults.clear()
  console.log(`${life} ${name.padEnd(24)} ${memory}; ${health}`)
  if (!alive) console.log(arena.agent.logText().slice(-1500))
}

async function main(): Promise<void> {
  const stages = values.together ? [chosen] : chosen.map(attack => [attack])
  for (const stage of stages) {
    if (arena === undefined) {
      arena = await Arena.open()
      if (values.receive) await arena.receive()
    }
    const seen = await arena.face(stage, Number(values.seconds ?? stage[0]?.seconds ?? 10))
    await pause(3000)
    const after = await arena.seen()
    const name = stage.map(each => each.name).join('+')
    print(name, arena, { ...seen, alive: after.alive }, after.lastMiB)
    if (after.alive && !values.fresh) continue
    if (!after.alive) console.log(`  ended with ${JSON.stringify(await arena.agent.exited)}`)
    await arena.close()
    arena = undefined
  }
  if (arena === undefined) return
  {
    const sent = await arena.quietBystander()
    if (!values.receive) await arena.receive()
    await pause(25_000) // two exports of metrics
    console.log(
      `bystander: ${sent} answered, counted ${arena.counted()}, without spans ${arena.missing(0, sent).length}`,
    )
    const { text } = await arena.agent.get('/metrics')
    for (const [line] of text.matchAll(/^svc_spans_dropped_total\{.*[1-9]\d*$/gm)) console.log(line)
    const { alive, mostMiB } = await arena.seen()
    console.log(`at last ${alive ? 'it lives' : 'it is DEAD'}; most ${mostMiB.toFixed(0)} MiB`)
    if (!alive) console.log(arena.agent.logText().slice(-1500))
    const began = performance.now()
    arena.agent.signal('SIGTERM')
    const exit = await arena.agent.exited
    console.log(`SIGTERM: ${(performance.now() - began).toFixed(0)} ms, ${JSON.stringify(exit)}`)
    await arena.close()
  }
}

let arena: Arena | undefined
try {
  await main()
} finally {
  await arena?.close()
}
