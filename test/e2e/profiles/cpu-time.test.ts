// owns: processor
// CPU time in profiles against the kernel's count: samples of a program that waits for processors are a matter of chance.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import { Bench } from '../../helpers/profiles/measured-program.ts'
import { ofProgram, ProfiledHost, sumOf } from '../../helpers/profiles/profiled-host.ts'
import { soak } from '../../helpers/soak.ts'

let host: ProfiledHost
let bench: Bench
before(async () => {
  if (withoutBpf) return
  bench = new Bench()
  host = await ProfiledHost.start({})
})
after(async () => {
  await host?.close()
  await bench?.close()
})

/** Time that other machines took from all CPUs of this one so far, in seconds (proc_stat(5), steal). */
function stolenSeconds(): number {
  return Number(readFileSync('/proc/stat', 'latin1').split(/\s+/, 9)[8]) / 100
}

/**
 * Within 3 % of the kernel's count, and what whole ticks of that and whole periods at its ends make. What was stolen
 * meanwhile counts to whoever had the CPU: the clock of the samples goes on then, the program's does not.
 */
function checkTime(what: string, ns: number, seconds: number, stolen: number): void {
  const text =
    `${what}: ${(ns / 1e9).toFixed(3)} s in profiles, ${seconds.toFixed(3)} s by /proc/PID/stat, ` +
    `${stolen.toFixed(2)} s stolen from all`
  console.log(text)
  const excess = ns / 1e9 - seconds
  const room = 0.03 * seconds + 0.02
  assert.ok(excess >= -room && excess <= room + stolen, text)
}

for (const [what, source, ...args] of [
  ['one thread', 'ratio'],
  ['eight threads', 'threads', '8'],
  ['signal handlers', 'signals'],
  ['page faults', 'touch'],
] as const) {
  test(`samples of a program with ${what} add up to its CPU time`, { skip: withoutBpf }, async () => {
    const file = bench.compile(source, [], `time-${source}`)
    const stolenBefore = stolenSeconds()
    const program = bench.start(file, args)
    await program.busyFor(soak ? 10 : 2)
    const seconds = await program.halt()
    const stolen = stolenSeconds() - stolenBefore
    const seen = await host.upToNow(ofProgram(file))
    await program.end('SIGKILL')
    checkTime(what, sumOf(seen), seconds, stolen)
  })
}
