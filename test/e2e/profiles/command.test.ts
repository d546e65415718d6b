// owns: ports, load
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import { below, type Folded, parseFolded, plain, totalOf } from '../../helpers/profiles/folded.ts'
import { Bench, type MeasuredProgram } from '../../helpers/profiles/measured-program.ts'
import { checkTwoToOne, describeOverlap, noiseFloor, overlap } from '../../helpers/profiles/overlap.ts'
import { PerfRecording, withoutPerf } from '../../helpers/profiles/perf.ts'
import { ProfiledHost } from '../../helpers/profiles/profiled-host.ts'
import { svcProgram } from '../../helpers/program-under-test.ts'
import { soak } from '../../helpers/soak.ts'

const seconds = soak ? 8 : 2

test('svc profile records what perf does at the same time', { skip: withoutBpf || withoutPerf }, async () => {
  const bench = new Bench()
  // Only the command asks for a high rate. perf is asked for user space alone.
  const host = await ProfiledHost.start({ sample_rate: 19, include_kernel: false })
  try {
    const program = bench.start(bench.compile('ratio', ['-fomit-frame-pointer']))
    const record = async (name: string): Promise<string> => {
      const file = join(bench.directory, name)
      const target = ['profile', String(program.pid), '--config', host.agent.file]
      const how = ['-d', `${seconds}s`, '-r', '997', '-o', file]
      await promisify(execFile)(process.execPath, [svcProgram, ...target, ...how])
      return file
    }
    await record('before.folded') // until then the program's table may not be there
    const { pid } = program
    const perf = await PerfRecording.start({
      pid,
      rate: 1009,
      callGraph: 'dwarf',
      directory: bench.directory,
    })
    const before = program.cpuSeconds()
    const file = await record('with.folded')
    const worked = program.cpuSeconds() - before
    const referee = below(plain(await perf.stop()), 'main')
    const ours = below(samplesOf(readFileSync(file, 'utf8'), worked), 'main')
    const text = describeOverlap(ours, referee)
    console.log(text)
    assert.ok(overlap(ours, referee).stacks >= noiseFloor(referee, totalOf(ours)) - 0.015, text)
    checkTwoToOne(ours, 'large_frame', 'small_frame')
    checkImage(readFileSync(await record('out.svg'), 'utf8'), program)
  } finally {
    await host.close()
    await bench.close()
  }
})

/** As many samples as so many seconds of work make, in the shares of the file. */
function samplesOf(text: string, worked: number): Folded {
  const recorded = plain(parseFolded(text))
  const total = totalOf(recorded)
  return new Map([...recorded].map(([stack, value]) => [stack, Math.round((value / total) * worked * 997)]))
}

function checkImage(text: string, { pid }: MeasuredProgram): void {
  assert.match(text, /^<(\?xml|svg)/)
  for (const name of ['main', 'large_frame', 'spin', String(pid)]) assert.ok(text.includes(name), name)
}
