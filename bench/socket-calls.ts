// What capture adds to the calls of applications: a write and its read over TCP, of protocols that are followed and of
// others, and a read of another file. Pairs without and with the agent, interleaved, for each back end; medians.
// Options: --pairs N, --rounds N.
// at most: 6 min
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { withTracefs } from '../test/helpers/tracefs.ts'
import { BenchHost } from './lib/bench-host.ts'
import { report } from './lib/figures.ts'

const { values: options } = parseArgs({
  options: { pairs: { type: 'string', default: '5' }, rounds: { type: 'string', default: '100000' } },
})
const pairs = Number(options.pairs)
const rounds = Number(options.rounds)
const host = new BenchHost()
const kinds = ['http', 'redis', 'unknown', 'zero'] as const

const program = join(host.directory, 'socket-calls')
execFileSync('gcc', ['-O2', '-o', program, join(import.meta.dirname, 'lib', 'socket-calls.c')])

/** Nanoseconds of one of each kind. */
function measure(): number[] {
  return kinds.map(kind =>
    Number(execFileSync(program, [kind, String(kind === 'zero' ? 10 * rounds : rounds)])),
  )
}

for (const backend of ['sock', 'syscalls']) {
  const added: number[][] = kinds.map(() => [])
  const base: number[][] = kinds.map(() => [])
  for (let i = 0; i < pairs; i++) {
    const alone = measure()
    const agent = await host.startAgent('', {
      wrapper: backend === 'syscalls' ? withTracefs : [],
      config: `agent: {ebpf: {backend: ${backend}}}\n`,
    })
    const observed = measure()
    await host.end(agent.child)
    for (const [k, time] of alone.entries()) {
      base[k]!.push(time)
      added[k]!.push(observed[k]! - time)
    }
  }
  for (const [k, kind] of kinds.entries()) {
    const what = kind === 'zero' ? 'a read' : 'a write and its read'
    report(`socket-calls.${backend}.${kind}.alone_ns`, base[k]!, 'ns', 'less', what)
    report(`socket-calls.${backend}.${kind}.added_ns`, added[k]!, 'ns', 'less')
  }
}
await host.close()
