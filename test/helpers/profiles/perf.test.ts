// owns: ports, load
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemNode, withoutNode20 } from '../host-needs.ts'
import { soak } from '../soak.ts'
import { type CpuProfile, foldCpuProfile } from './cpu-profile.ts'
import { below, type Folded, parseFolded, plain, shareOf, totalOf } from './folded.ts'
import { Bench, sourceFile } from './measured-program.ts'
import { checkTwoToOne, describeOverlap, overlap } from './overlap.ts'
import { foldScript, PerfRecording, withoutPerf } from './perf.ts'

// The referees of the profiles' tests, held against each other and against programs whose shares are known.

const samples = soak ? 5000 : 600

test('what perf script prints is folded root first', () => {
  const text = '\n\t    118a spin\n\t    1080 main\n\n\n\t    118a spin\n\t    1080 main\n\n\n\t    ffff\n\n'
  assert.deepEqual(
    [...foldScript(text)],
    [
      ['main;spin', 2],
      ['[unknown]', 1],
    ],
  )
})

test('perf agrees with itself, and along frame pointers it does not', { skip: withoutPerf }, async () => {
  const bench = new Bench()
  try {
    const program = bench.start(bench.compile('ratio', ['-fomit-frame-pointer']))
    const { pid } = program
    const { directory } = bench
    const recordings = [
      await PerfRecording.start({ pid, rate: 1009, callGraph: 'dwarf', directory }),
      await PerfRecording.start({ pid, rate: 1013, callGraph: 'dwarf', directory }),
      await PerfRecording.start({ pid, rate: 1019, callGraph: 'fp', directory }),
    ]
    await program.busyFor((2.5 * samples) / 1000)
    const [one, other, pointers] = await inTurn(recordings)
    assert.ok(totalOf(one!) > samples / 2, `${totalOf(one!)} samples`)
    const same = overlap(one!, other!)
    const noise = samples >= 5000 ? 0.97 : 0.9
    assert.ok(same.stacks >= noise && same.inclusive >= 0.9, describeOverlap(one!, other!))
    const control = overlap(below(one!, 'main'), below(pointers!, 'main'))
    assert.ok(control.stacks < 0.2, describeOverlap(one!, pointers!))
    checkTwoToOne(one!, 'large_frame', 'small_frame')
  } finally {
    await bench.close()
  }
})

const runtimes = [
  { name: 'the project', node: process.execPath, skip: false },
  { name: 'Debian', node: systemNode, skip: withoutNode20 },
] as const
for (const { name, node, skip } of runtimes) {
  test(`the profiler of V8 of ${name} sees a frame of each function`, { skip }, async () => {
    const bench = new Bench()
    try {
      const script = sourceFile('ratio.js')
      const program = bench.start(node, ['--cpu-prof', '--cpu-prof-interval', '1000', script])
      await program.busyFor(1 + samples / 1000)
      await program.end()
      const folded = foldCpuProfile(cpuProfileIn(bench.directory), 'ratio.js', 1e6)
      const ends = shareOf(folded, frames => frames.at(-1) === 'spin')
      assert.ok(ends > 0.95, `${ends}: a function became part of its caller`)
      checkTwoToOne(folded, 'doA', 'doB')
      assert.ok(shareOf(folded, frames => /;work;\(anonymous\);leafB;spin$/.test(frames.join(';'))) > 0.02)
    } finally {
      await bench.close()
    }
  })
}

test('the timer of CPython sees a frame of each function', async () => {
  const bench = new Bench()
  try {
    const file = join(bench.directory, 'own.folded')
    const program = bench.start('/usr/bin/python3', [sourceFile('ratio.py'), file])
    await program.busyFor(samples / 200)
    await program.end()
    const folded = parseFolded(readFileSync(file, 'utf8'))
    checkTwoToOne(folded, 'Worker.do_a', 'Worker.do_b')
    assert.ok(
      shareOf(folded, frames => frames.join(';').endsWith('work;work.<locals>.<lambda>;leaf_b;spin')) > 0.02,
    )
  } finally {
    await bench.close()
  }
})

function cpuProfileIn(directory: string): CpuProfile {
  const name = readdirSync(directory).find(name => name.endsWith('.cpuprofile'))!
  return JSON.parse(readFileSync(join(directory, name), 'utf8')) as CpuProfile
}

async function inTurn(recordings: readonly PerfRecording[]): Promise<Folded[]> {
  const folded: Folded[] = []
  for (const recording of recordings) folded.push(plain(await recording.stop()))
  return folded
}
