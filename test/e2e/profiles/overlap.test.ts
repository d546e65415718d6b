// owns: processor
import assert from 'node:assert/strict'
import { copyFileSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import { systemNode, withoutNode20 } from '../../helpers/host-needs.ts'
import { foldCpuProfile } from '../../helpers/profiles/cpu-profile.ts'
import {
  below,
  type Folded,
  foldedOf,
  mapFrames,
  parseFolded,
  plain,
  totalOf,
} from '../../helpers/profiles/folded.ts'
import { Bench, sourceFile } from '../../helpers/profiles/measured-program.ts'
import { checkTwoToOne, describeOverlap, noiseFloor, overlap } from '../../helpers/profiles/overlap.ts'
import { PerfRecording, withoutPerf } from '../../helpers/profiles/perf.ts'
import {
  describe,
  fold,
  type HostSample,
  inFile,
  latest,
  ofProgram,
  ProfiledHost,
  sumOf,
} from '../../helpers/profiles/profiled-host.ts'
import { soak } from '../../helpers/soak.ts'

// The agent's stacks beside those of perf and of the runtimes' own profilers, of the same time and by other rates:
// docs/develop/profiling.md.

const samples = soak ? 6000 : 1500

let host: ProfiledHost
let bench: Bench
before(async () => {
  if (withoutBpf) return
  bench = new Bench()
  host = await ProfiledHost.start()
})
after(async () => {
  await host?.close()
  await bench?.close()
})

/** Holds our profile against the referee's. `floor` is what two profiles of the referee have in common. */
function checkOverlap(what: string, ours: Folded, referee: Folded, floor: number, least: number): void {
  const { stacks } = overlap(ours, referee)
  const text = `${what}: ${describeOverlap(ours, referee)}; floor ${(100 * floor).toFixed(1)} %`
  console.log(text)
  assert.ok(stacks >= floor - 0.015, text)
  if (soak) assert.ok(stacks >= least, text)
}

/** As many samples as the referee has, in the same shares: each counts once for each period that it stands for. */
function counted(folded: Folded): Folded {
  return foldedOf([...folded].map(([stack, value]) => [stack, Math.round((value * 997) / 1e9)]))
}

for (const [what, flag] of [
  ['without frame pointers', '-fomit-frame-pointer'],
  ['with frame pointers', '-fno-omit-frame-pointer'],
] as const) {
  test(`stacks of a C program ${what} are those of perf`, { skip: withoutBpf || withoutPerf }, async () => {
    const name = flag.replaceAll('-', '')
    const file = bench.compile('ratio', [flag], name)
    const program = bench.start(file)
    const complete = ({ frames }: HostSample) => frames.at(-1)?.name === '_start'
    // Files are read as their code is met: of an interval every stack has to be.
    const read = (seen: readonly HostSample[]) => seen.length > 0 && latest(seen).every(complete)
    await host.wait('its stacks are complete', ofProgram(file), read)
    const { pid } = program
    const { directory } = bench
    const sinceMs = Date.now()
    const one = await PerfRecording.start({ pid, rate: 1009, callGraph: 'dwarf', directory })
    const other = await PerfRecording.start({ pid, rate: 1013, callGraph: 'dwarf', directory })
    await program.busyFor(samples / 1000)
    const referees = [plain(await one.stop()), plain(await other.stop())].map(seen => below(seen, 'main'))
    const seen = await host.upToNow(ofProgram(file), sinceMs)
    await program.end('SIGKILL')

    const rooted = sumOf(seen.filter(complete)) / sumOf(seen)
    const others = seen.filter(sample => !complete(sample))
    assert.ok(rooted > 0.99, `${rooted} of the stacks reach _start; others: ${describe(others)}`)
    const ours = below(plain(counted(fold(seen))), 'main')
    const floor = Math.min(
      overlap(referees[0]!, referees[1]!).stacks,
      noiseFloor(referees[0]!, totalOf(ours)),
    )
    checkOverlap(`C ${what}`, ours, referees[0]!, floor, 0.97)
    checkTwoToOne(ours, 'large_frame', 'small_frame')
  })
}

for (const { name, node, skip } of [
  { name: 'Node.js 24', node: process.execPath, skip: false },
  { name: 'Node.js 20', node: systemNode, skip: withoutNode20 },
] as const) {
  test(`stacks of JavaScript in ${name} are those of V8's own profiler`, {
    skip: withoutBpf || skip,
  }, async () => {
    const own = new Bench()
    try {
      const script = join(own.directory, 'ratio.js')
      copyFileSync(sourceFile('ratio.js'), script)
      const program = own.start(node, ['--cpu-prof', '--cpu-prof-interval', '1300', script])
      const named = ({ frames }: HostSample) => frames.some(frame => frame.name === 'leafA')
      await host.wait('functions are named', inFile(script), seen => seen.some(named))
      const sinceMs = Date.now()
      const startedMs = sinceMs - 1000 * program.cpuSeconds()
      await program.busyFor(samples / 750)
      const seen = await host.upToNow(inFile(script), sinceMs)
      await program.end()
      const file = readdirSync(own.directory).find(name => name.endsWith('.cpuprofile'))!
      const profile = JSON.parse(readFileSync(join(own.directory, file), 'utf8'))
      const referee = foldCpuProfile(profile, 'ratio.js', (sinceMs - startedMs) * 1000)
      const ours = counted(fold(seen, frame => frame.file === script))
      const floor = noiseFloor(referee, totalOf(ours))
      checkOverlap(name, anonymous(ours), anonymous(referee), floor, 0.95)
    } finally {
      await own.close()
    }
  })
}

test('stacks of Python 3.11 are those of its own timer', { skip: withoutBpf }, async () => {
  const own = new Bench()
  try {
    const script = join(own.directory, 'ratio.py')
    copyFileSync(sourceFile('ratio.py'), script)
    const file = join(own.directory, 'own.folded')
    const program = own.start('/usr/bin/python3', [script, file])
    const named = ({ frames }: HostSample) => frames.some(frame => frame.name === 'leaf_a')
    await host.wait('functions are named', inFile(script), seen => seen.some(named))
    const sinceMs = Date.now()
    await program.busyFor(samples / (soak ? 190 : 500))
    const seen = await host.upToNow(inFile(script), sinceMs)
    await program.end()
    const referee = withoutSampling(parseFolded(readFileSync(file, 'utf8')))
    const ours = withoutSampling(counted(fold(seen, frame => frame.file === script)))
    checkOverlap('Python 3.11', ours, referee, noiseFloor(referee, totalOf(ours)), 0.95)
  } finally {
    await own.close()
  }
})

/** One name for what has none. */
function anonymous(folded: Folded): Folded {
  return mapFrames(folded, frames => frames.map(name => (name === '' ? '(anonymous)' : name)))
}

/** The time that the referee itself takes in the program. */
function withoutSampling(folded: Folded): Folded {
  return mapFrames(folded, frames => (frames.at(-1) === 'sample' ? [] : frames))
}
