// owns: processor
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import { systemNode } from '../../helpers/host-needs.ts'
import type { ReceivedFrame } from '../../helpers/otlp-items.ts'
import { Bench, sourceFile } from '../../helpers/profiles/measured-program.ts'
import {
  describe,
  type HostSample,
  isNamed,
  isUser,
  ofProgram,
  ProfiledHost,
  partOf,
  sumOf,
} from '../../helpers/profiles/profiled-host.ts'
import { soak } from '../../helpers/soak.ts'

// Whether everything is there: names, memory and waiting, each against what the kernel or the program knows.

let host: ProfiledHost
let bench: Bench
before(async () => {
  if (withoutBpf) return
  bench = new Bench()
  host = await ProfiledHost.start({ memory: true, off_cpu: true })
})
after(async () => {
  await host?.close()
  await bench?.close()
})

/** Of a program without names. */
function isBare({ name }: ReceivedFrame): boolean {
  return name.endsWith(': stripped]')
}

test('at least 95 of 100 frames of a busy host have a name, where their file has any', {
  skip: withoutBpf,
}, async () => {
  const runtimes = [
    bench.start('/usr/bin/python3', [sourceFile('ratio.py')]),
    bench.start(process.execPath, [sourceFile('ratio.js')]),
    bench.start(systemNode, [sourceFile('ratio.js')]),
  ]
  // What a runtime has just begun is read and named a moment later; a busy host has long done so.
  const hasFrame = (name: string) => (seen: readonly HostSample[]) =>
    seen.some(({ frames }) => frames.some(frame => frame.name === name))
  for (const name of ['leaf_a', 'leafA'])
    await host.wait(`${name} is named`, ({ kind }) => kind === 'cpu', hasFrame(name))
  const others = [
    bench.start('/bin/bash', ['-c', 'while :; do for i in {1..2000}; do x=$((x + i)); done; done']),
    bench.start('/bin/bash', ['-c', 'while :; do head -c 8000000 /bin/bash | gzip > /dev/null; done']),
    bench.start('openssl', ['speed', '-seconds', '60', 'sha256']),
    bench.start('/bin/bash', ['-c', 'while :; do perf bench sched messaging -g 1 -l 500; done']),
  ]
  const loops = [...runtimes, ...others]
  /** What is begun here, and nothing of other tests: those have just begun all the time. */
  const names = ['ratio', 'bash', 'gzip', 'openssl', 'perf', 'sched-messaging']
  const serviceOf = ({ resource }: HostSample) => String(resource['service.name'])
  // head runs too briefly to be waited for.
  const isOwn = (sample: HostSample) =>
    sample.kind === 'cpu' && [...names, 'head'].includes(serviceOf(sample))
  const hasAll = (found: readonly HostSample[]) =>
    names.every(name => found.some(sample => serviceOf(sample) === name))
  // Files that are met for the first time are read a moment later; those of a busy host have long been.
  const isRead = ({ frames }: HostSample) =>
    frames.some(isUser) && frames.filter(isUser).every(frame => isNamed(frame) || isBare(frame))
  await host.wait('each program has a stack whose files were read', isOwn, found =>
    hasAll(found.filter(isRead)),
  )
  const sinceMs = Date.now()
  for (const loop of runtimes.slice(0, 2)) await loop.busyFor(soak ? 10 : 0.2)
  const isNew = (sample: HostSample) => isOwn(sample) && sample.startMs >= sinceMs
  const seen = await host.wait('there are samples of each', isNew, hasAll)
  await Promise.all(loops.map(loop => loop.end('SIGKILL')))

  let all = 0
  let named = 0
  let stripped = 0
  const bare = new Set<string>()
  const nameless = new Map<string, number>()
  for (const { frames, value, resource } of seen)
    for (const frame of frames.filter(isUser)) {
      all += value
      if (isNamed(frame)) named += value
      else if (isBare(frame)) {
        stripped += value
        bare.add(frame.mapping.path)
      } else {
        const what = `${resource['service.name']}: ${frame.name} ${frame.mapping.path}`
        nameless.set(what, (nameless.get(what) ?? 0) + value)
      }
    }
  for (const path of bare) {
    const sections = spawnSync('readelf', ['--wide', '--sections', path]).stdout.toString()
    assert.doesNotMatch(sections, /\.symtab|\.gnu_debugdata/, `${path} has symbols`)
  }
  const percent = (part: number) => `${((100 * part) / all).toFixed(1)} %`
  const worst = [...nameless].toSorted((a, b) => b[1] - a[1]).slice(0, 8)
  const text =
    `of the frames of user space ${percent(named)} have names, ${percent(stripped)} are of programs without any ` +
    `(${[...bare].join(', ')}); the others: ${worst.map(([what, value]) => `${what} ${percent(value)}`).join(', ')}`
  console.log(text)
  assert.ok(named / (all - stripped) >= 0.95, text)
})

test('memory is told of the functions that made it grow, in their shares', { skip: withoutBpf }, async () => {
  const file = bench.compile('touch', [], 'touch-memory')
  const program = bench.start(file)
  const most = soak ? 40e9 : 8e9
  const enough = (seen: readonly HostSample[]) => sumOf(seen) > most
  const seen = await host.wait(`${most} bytes are told`, ofProgram(file, 'memory'), enough)
  await program.end('SIGKILL')
  assert.ok(seen.every(({ unit }) => unit === 'bytes'))
  const large = partOf(seen, names => names.includes('grow_large'))
  const small = partOf(seen, names => names.includes('grow_small'))
  const text = `large : small is ${(large / small).toFixed(3)}, and 2 by construction; of ${describe(seen)}`
  assert.ok(large + small > 0.95, text)
  assert.ok(Math.abs(large / small / 2 - 1) < (soak ? 0.03 : 0.06), text)
})

test('memory that is told adds up to what was touched', { skip: withoutBpf }, async () => {
  const file = bench.compile('touch', [], 'touch-sum')
  const program = bench.start(file)
  await program.busyFor(soak ? 5 : 1)
  await program.halt()
  const faults = program.minorFaults()
  const seen = await host.upToNow(ofProgram(file, 'memory'))
  await program.end('SIGKILL')
  const text = `${sumOf(seen)} bytes told of ${faults} faults of 4 KiB`
  console.log(text)
  assert.ok(Math.abs(sumOf(seen) / (4096 * faults) - 1) < 0.05, text)
})

test('waiting is told of the functions that wait, and adds up to the time that passed', {
  skip: withoutBpf,
}, async () => {
  const file = bench.compile('naps', [])
  const startedMs = Date.now()
  // Several: where others of the host wait often, one of several waits is looked at.
  const programs = Array.from({ length: 8 }, () => bench.start(file))
  const long = programs.length * (soak ? 20e9 : 8e9)
  await host.wait('they have waited', ofProgram(file, 'off_cpu'), seen => sumOf(seen) > long)
  const haltedMs = Date.now()
  await Promise.all(programs.map(program => program.halt()))
  const seen = await host.upToNow(ofProgram(file, 'off_cpu'))
  await Promise.all(programs.map(program => program.end('SIGKILL')))
  const naps = seen.filter(({ frames }) => frames.some(({ name }) => name === 'nap'))
  const passed = programs.length * (haltedMs - startedMs) * 1e6
  const text = `${sumOf(naps) / 1e9} s told of ${passed / 1e9} s: ${describe(seen)}`
  // Only some waits are looked at, and stand for the others.
  assert.ok(Math.abs(sumOf(naps) / passed - 1) < (soak ? 0.1 : 0.25), text)
  const ratio =
    partOf(naps, names => names.includes('nap_long')) / partOf(naps, names => names.includes('nap_short'))
  assert.ok(Math.abs(ratio / 2 - 1) < (soak ? 0.1 : 0.25), text)
})
