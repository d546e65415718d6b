// owns: ports, load
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { after, test } from 'node:test'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import { resource } from '../../foundation/model/resource.ts'
import { StackSampler } from '../capture/stack-sampler.ts'
import { Profiler } from './profiler.ts'
import type { Sampling } from './sampler.ts'

const children: ChildProcess[] = []
const profilers: Profiler[] = []
after(async () => {
  for (const child of children) child.kill('SIGKILL')
  for (const profiler of profilers) await profiler.close()
})
const settings = {
  sampleRate: 97,
  cpu: true,
  memory: false,
  offCpu: false,
  includeKernel: true,
  intervalMs: 60_000,
  symbols: { demangle: true, perfMap: false, debugDirs: [], cacheBytes: 1 << 24, cacheDir: '' },
}
const busy = resource({ 'service.name': 'busy' })

function open(pid: number) {
  const profiles: Profile[] = []
  const warnings: string[] = []
  const applied: Sampling[] = []
  const refuse = { memory: false }
  const profiler = new Profiler({
    settings,
    open: (sampling, sink) => {
      const sampler = new StackSampler(nativeOrThrow(), sampling, sink)
      const apply = sampler.apply.bind(sampler)
      sampler.apply = wanted => {
        applied.push(wanted)
        if (refuse.memory && wanted.memory) throw new Error('refused')
        apply(wanted)
      }
      return sampler
    },
    group: of => (of === pid ? busy : undefined),
    emit: (_resource, profile) => profiles.push(profile),
    linkOf: () => undefined,
    warn: (_message, reason) => warnings.push(reason),
  })
  profilers.push(profiler)
  return { profiler, profiles, warnings, applied, refuse }
}

function spin(): number {
  const child = spawn(process.execPath, ['-e', 'for (;;) Math.sqrt(2)'], { stdio: 'ignore' })
  children.push(child)
  return child.pid!
}

const never = new AbortController().signal
const all = { kind: 'cpu', matches: () => true } as const

test('values are the CPU time, and the end ends recordings with what they have', {
  skip: withoutBpf,
}, async () => {
  const pid = spin()
  const openedMs = performance.now()
  const { profiler, profiles } = open(pid)
  const recorded = profiler.record(all, settings, 600_000, never)
  const before = (performance.now() - openedMs) * 1e6
  await new Promise(resolve => setTimeout(resolve, 1_500))
  await Promise.all([profiler.emit(), profiler.emit(), profiler.emit()])
  await profiler.close()
  const [group] = await recorded
  const { durationUs, samples, unit } = group!.profile
  const value = samples.reduce((sum, sample) => sum + sample.value, 0)
  assert.equal(unit, 'nanoseconds')
  assert.ok(durationUs > 1_400_000 && durationUs < 60_000_000, `${durationUs} µs`)
  assert.ok(value > 0 && value <= 1.1 * durationUs * 1000, `${value} ns in ${durationUs} µs`)
  const counted = profiles.flatMap(profile => profile.samples.map(sample => sample.value * profile.period!))
  const exported = counted.reduce((sum, each) => sum + each, 0)
  // What was sampled before the recording is exported, too.
  assert.ok(
    exported > 0.99 * value && exported < value + before + 2e9 / settings.sampleRate,
    `${exported} of ${value} ns`,
  )
  assert.deepEqual(await profiler.record(all, settings, 600_000, never), [])
})

test('the first profile does not wait for the end of its interval', { skip: withoutBpf }, async () => {
  const { profiler, profiles } = open(spin())
  // An interval is a minute here.
  for (let i = 0; i < 300 && profiles.length === 0; i++)
    await new Promise(resolve => setTimeout(resolve, 100))
  await profiler.close()
  const [first] = profiles
  assert.ok(first !== undefined && first.samples.length > 0)
  assert.ok(first.durationUs < 30_000_000, `${first.durationUs} µs`)
})

test('a recording that the kernel refuses changes nothing', { skip: withoutBpf }, async () => {
  const { profiler, applied, refuse } = open(spin())
  refuse.memory = true
  const memory = { ...settings, sampleRate: 997, memory: true }
  await assert.rejects(profiler.record({ ...all, kind: 'memory' }, memory, 10, never), /refused/)
  assert.deepEqual([applied.at(-1)?.memory, profiler.rate, profiler.degraded], [false, 97, undefined])
  profiler.configure({ ...settings, memory: true })
  assert.equal(profiler.degraded, 'refused')
  profiler.configure(settings)
  assert.equal(profiler.degraded, undefined)
  assert.deepEqual(await profiler.record(all, settings, 600_000, AbortSignal.abort()), [])
  await profiler.close()
})
