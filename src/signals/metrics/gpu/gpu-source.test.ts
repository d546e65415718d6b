import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { nativeOrThrow } from '../../../../test/helpers/native.ts'
import { StandInNvml } from '../../../../test/helpers/stand-in-nvml/stand-in-nvml.ts'
import type { Metric } from '../../../foundation/model/metric.ts'
import { gpuMetrics } from './gpu-metrics.ts'
import { GpuSource, type GpuSourceOptions } from './gpu-source.ts'

const native = nativeOrThrow()

interface Point {
  readonly value: number
  readonly startUs: number
  readonly timeUs: number
  readonly attributes: Readonly<Record<string, unknown>>
}

/** A source, with what it told. */
class Watched {
  readonly source: GpuSource
  readonly warnings: string[] = []
  #host = new Map<string, Point[]>()
  #processes = new Map<number, Map<string, Point[]>>()
  /** Fractions of time that processes were said to keep GPUs busy. */
  readonly busy = new Set<string>()
  /** The same of their memory. */
  readonly memoryBusy = new Set<string>()
  rounds = 0

  constructor(options: Partial<GpuSourceOptions>) {
    this.source = new GpuSource({
      native,
      intervalMs: 20,
      retryMs: 20,
      perProcess: true,
      emitHost: metric => this.#keepHost(metric),
      emitProcess: (pid, metric) => {
        if (!this.#processes.has(pid)) this.#processes.set(pid, new Map())
        this.#processes.get(pid)!.set(metric.name, pointsOf(metric))
        const { 'GPU-0 general': busy } = this.process(pid, 'svc.gpu.process.utilization')
        this.busy.add(`${pid} ${busy}`)
        const { 'GPU-0': memory } = this.process(pid, 'svc.gpu.process.memory.busy')
        this.memoryBusy.add(`${pid} ${memory}`)
      },
      warn: (reason, hint) => this.warnings.push(`${reason} | ${hint}`),
      ...options,
    })
  }

  #keepHost(metric: Metric): void {
    // The first of each round.
    if (metric.name === 'hw.status') {
      this.#host = new Map()
      this.#processes = new Map()
      this.rounds++
    }
    assert.ok(metric.name in gpuMetrics, metric.name)
    this.#host.set(metric.name, pointsOf(metric))
  }

  /** Numbers of a metric in the last round by GPU and the attributes that the metric has of its own. */
  host(name: keyof typeof gpuMetrics): Record<string, number> {
    return numbers(name, this.#host.get(name) ?? [])
  }

  process(pid: number, name: keyof typeof gpuMetrics): Record<string, number> {
    return numbers(name, this.#processes.get(pid)?.get(name) ?? [])
  }

  points(name: string): readonly Point[] {
    return this.#host.get(name) ?? []
  }

  get pids(): number[] {
    return [...this.#processes.keys()].sort((a, b) => a - b)
  }

  /** Waits for two more rounds: the last of them was asked after this. */
  async round(): Promise<void> {
    const from = this.rounds
    await until(() => this.rounds >= from + 2)
  }
}

function pointsOf(metric: Metric): Point[] {
  assert.ok(metric.kind === 'gauge' || metric.kind === 'sum')
  return metric.points.map(point => ({ ...point, attributes: point.attributes.toObject() }))
}

function numbers(name: keyof typeof gpuMetrics, points: readonly Point[]): Record<string, number> {
  const own = new Set(Object.values(gpuMetrics[name].extras).map(({ key }) => key))
  return Object.fromEntries(
    points.map(({ attributes, value }) => [['hw.id', ...own].map(key => attributes[key]).join(' '), value]),
  )
}

async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 60_000
  while (!condition()) {
    assert.ok(performance.now() < end, 'waited for a minute')
    await sleep(5)
  }
}

async function watching(
  state: readonly string[],
  body: (watched: Watched, nvml: StandInNvml) => Promise<void>,
  options: Partial<GpuSourceOptions> & { old?: boolean } = {},
): Promise<void> {
  const nvml = new StandInNvml(state, options.old)
  const watched = new Watched({ library: nvml.library, ...options })
  try {
    watched.source.start()
    await body(watched, nvml)
  } finally {
    watched.source.stop()
    nvml.goOn()
    // Its thread may still read the state.
    await until(() => threads() === 0)
    nvml.remove()
  }
}

const atFirst = new Set(readdirSync('/proc/self/task'))

/** Threads of the addon that ask: they get their name when they run, and until then have that of the main thread. */
function threads(): number {
  const more = readdirSync('/proc/self/task').filter(task => !atFirst.has(task))
  const own = nameOf(String(process.pid))
  return more.map(task => nameOf(task)).filter(name => name === 'svc-nvml\n' || name === own).length
}

function nameOf(task: string): string {
  try {
    return readFileSync(`/proc/self/task/${task}/comm`, 'latin1')
  } catch {
    return '' // it has ended
  }
}

const two = ['driver 555.42', 'devices 2', 'plain 1', 'energy 5000', 'ecc 3', 'reasons 69']

test('a GPU is measured under the names of the semantic conventions', async () => {
  await watching(two, async watched => {
    await watched.round()
    const { state } = watched.source
    assert.deepEqual(state, {
      on: true,
      reason: '',
      hint: '',
      driver: '555.42',
      devices: [
        { index: 0, uuid: 'GPU-0', name: 'Stand-in', reason: '' },
        { index: 1, uuid: 'GPU-1', name: 'Stand-in', reason: '' },
      ],
    })
    const host = watched.host.bind(watched)
    // The decoder says 101 %, which is nonsense.
    assert.deepEqual(host('hw.gpu.utilization'), { 'GPU-0 general': 0.75, 'GPU-0 encoder': 0.1 })
    assert.deepEqual(host('hw.gpu.memory.usage'), { 'GPU-0': 250, 'GPU-1': 250 })
    assert.deepEqual(host('hw.gpu.memory.limit'), { 'GPU-0': 1000, 'GPU-1': 1000 })
    assert.deepEqual(host('hw.gpu.memory.utilization'), { 'GPU-0': 0.25, 'GPU-1': 0.25 })
    assert.deepEqual(host('svc.gpu.memory.busy'), { 'GPU-0': 0.2 })
    assert.deepEqual(host('hw.temperature'), { 'GPU-0 gpu': 45 })
    assert.deepEqual(host('hw.power'), { 'GPU-0': 123.4 })
    assert.deepEqual(host('hw.energy'), { 'GPU-0': 5 })
    assert.deepEqual(host('hw.fan.speed_ratio'), { 'GPU-0': 0.31 })
    assert.deepEqual(host('hw.errors'), { 'GPU-0 corrected': 3, 'GPU-0 uncorrected': 13 })
    assert.deepEqual(host('svc.gpu.errors.lifetime'), { 'GPU-0 corrected': 103, 'GPU-0 uncorrected': 113 })
    assert.deepEqual(host('svc.gpu.clock.frequency'), {
      'GPU-0 graphics': 1000e6,
      'GPU-0 sm': 1001e6,
      'GPU-0 memory': 1002e6,
      'GPU-0 video': 1003e6,
    })
    assert.deepEqual(host('svc.gpu.throttled'), {
      'GPU-0 sw_power_cap': 1,
      'GPU-0 hw_slowdown': 0,
      'GPU-0 sync_boost': 0,
      'GPU-0 sw_thermal': 0,
      'GPU-0 hw_thermal': 1,
      'GPU-0 hw_power_brake': 0,
    })
    assert.deepEqual(host('svc.gpu.pcie.link.generation'), { 'GPU-0': 4 })
    assert.deepEqual(host('svc.gpu.pcie.link.width'), { 'GPU-0': 16 })
    // A counter of 32 bits is none.
    assert.deepEqual(host('hw.gpu.io'), {})
    assert.deepEqual(host('svc.gpu.pcie.throughput'), {
      'GPU-0 receive': 700_000,
      'GPU-0 transmit': 300_000,
    })
    assert.deepEqual(host('hw.status'), {
      'GPU-0 ok': 1,
      'GPU-0 failed': 0,
      'GPU-1 ok': 1,
      'GPU-1 failed': 0,
    })
    assert.deepEqual(watched.points('hw.power')[0]!.attributes, {
      'hw.id': 'GPU-0',
      'hw.type': 'gpu',
      'hw.name': 'GPU 0',
      'hw.vendor': 'NVIDIA',
      'hw.model': 'Stand-in',
      'hw.serial_number': 'S123',
      'hw.driver_version': '555.42',
    })
    assert.deepEqual(watched.warnings, [])
  })
})

test('bytes over PCIe are counted where the driver counts them in 64 bits', async () => {
  await watching(['devices 1', 'counters 5000000000 7'], async watched => {
    await watched.round()
    assert.deepEqual(watched.host('hw.gpu.io'), { 'GPU-0 receive': 7, 'GPU-0 transmit': 5_000_000_000 })
    assert.deepEqual(watched.host('svc.gpu.pcie.throughput'), {})
  })
})

test('a counter that went back began anew after it was last seen', async () => {
  await watching(['devices 1', 'energy 5000'], async (watched, nvml) => {
    await watched.round()
    const [before] = watched.points('hw.energy')
    nvml.says(['devices 1', 'energy 1000'])
    await watched.round()
    const [after] = watched.points('hw.energy')
    assert.equal(after?.value, 1)
    assert.ok(after.startUs >= before!.timeUs, 'began before the last time')
    assert.ok(before!.startUs < before!.timeUs)
  })
})

test('an older library says what it has', async () => {
  await watching(
    two,
    async watched => {
      await watched.round()
      assert.deepEqual(watched.host('hw.temperature'), { 'GPU-0 gpu': 45 })
      assert.deepEqual(watched.host('hw.gpu.memory.usage'), { 'GPU-0': 300, 'GPU-1': 300 })
      assert.deepEqual(watched.host('hw.power'), {})
      assert.deepEqual(watched.pids, [])
    },
    { old: true },
  )
})

test('processes are measured on their GPU, once where they compute and draw', async () => {
  const state = ['devices 1', 'compute 11 100', 'graphics 11 100', 'graphics 12 ?', 'compute 13 7']
  await watching([...state, 'sample 11 1000 99 9'], async (watched, nvml) => {
    // The first answer has samples of a time before.
    await until(() => watched.rounds >= 1 && watched.pids.length === 3)
    nvml.says([...state, 'sample 11 2000 50 5', 'sample 11 3000 40 4', 'sample 99 3000 1 1'])
    await until(() => watched.busy.has('11 0.4'))
    // Neither the one that was older, nor the one of before.
    assert.ok(!watched.busy.has('11 0.5') && !watched.busy.has('11 0.99'))
    assert.ok(watched.memoryBusy.has('11 0.04') && !watched.memoryBusy.has('11 0.05'))
    assert.deepEqual(watched.pids, [11, 12, 13])
    assert.deepEqual(watched.process(11, 'svc.gpu.process.memory.usage'), { 'GPU-0': 100 })
    assert.deepEqual(watched.process(12, 'svc.gpu.process.memory.usage'), {})
    assert.deepEqual(watched.process(13, 'svc.gpu.process.memory.usage'), { 'GPU-0': 7 })
    // No sample since then: idle.
    await until(() => watched.process(11, 'svc.gpu.process.utilization')['GPU-0 general'] === 0)
    assert.deepEqual(watched.process(13, 'svc.gpu.process.utilization'), {
      'GPU-0 general': 0,
      'GPU-0 encoder': 0,
      'GPU-0 decoder': 0,
    })
  })
})

test('without per-process measurement none is told', async () => {
  await watching(
    ['devices 1', 'compute 11 100'],
    async watched => {
      await watched.round()
      assert.deepEqual(watched.pids, [])
    },
    { perProcess: false },
  )
})

test('instances of a GPU (MIG) have their own memory and processes', async () => {
  await watching(['devices 1', 'mig 0', 'compute 11 100 2', 'compute 12 5 9'], async watched => {
    await watched.round()
    await until(() => watched.pids.length === 2)
    assert.deepEqual(watched.host('hw.gpu.memory.usage'), { 'GPU-0': 250, 'MIG-1': 125, 'MIG-2': 125 })
    assert.deepEqual(watched.host('hw.gpu.utilization'), { 'GPU-0 encoder': 0.1 })
    const [, instance] = watched.points('hw.gpu.memory.limit')
    assert.equal(instance!.attributes['hw.parent'], 'GPU-0')
    assert.equal(instance!.attributes['hw.name'], 'GPU 0 MIG 1')
    assert.equal(instance!.attributes['hw.model'], 'Stand-in MIG 1g.5gb')
    assert.deepEqual(watched.process(11, 'svc.gpu.process.memory.usage'), { 'MIG-2': 100 })
    // An instance that nobody told of.
    assert.deepEqual(watched.process(12, 'svc.gpu.process.memory.usage'), { 'GPU-0': 5 })
  })
})

test('a GPU that is lost is named with its hint, and the others go on', async () => {
  await watching(two, async (watched, nvml) => {
    await watched.round()
    nvml.says([...two, 'status 0 15'])
    await until(() => watched.source.state.reason !== '')
    await watched.round()
    const { on, reason, hint, devices } = watched.source.state
    assert.ok(on)
    assert.equal(reason, 'GPU 0 (Stand-in): GPU is lost')
    assert.match(hint, /dmesg/)
    assert.deepEqual(devices[0], { index: 0, uuid: 'GPU-0', name: 'Stand-in', reason: 'GPU is lost' })
    assert.deepEqual(watched.host('hw.gpu.memory.usage'), { 'GPU-1': 250 })
    assert.deepEqual(watched.host('hw.status'), {
      'GPU-0 ok': 0,
      'GPU-0 failed': 1,
      'GPU-1 ok': 1,
      'GPU-1 failed': 0,
    })
    assert.equal(watched.warnings.length, 1)
    nvml.says(two)
    await until(() => watched.source.state.reason === '')
  })
})

test('where all GPUs fail, the library is loaded anew', async () => {
  await watching(['devices 1', 'status 0 4'], async (watched, nvml) => {
    await until(() => nvml.log.filter(word => word === 'init').length >= 2)
    assert.ok(nvml.log.includes('shutdown'))
    const { on, reason, hint } = watched.source.state
    assert.deepEqual({ on, reason }, { on: false, reason: 'GPU 0: Insufficient Permissions' })
    assert.match(hint, /root/)
    nvml.says(['devices 1'])
    await until(() => watched.source.state.on)
  })
})

test('a driver that is not loaded is a reason with a hint, told once, until it is', async () => {
  await watching(['init 9'], async (watched, nvml) => {
    await until(() => nvml.log.length >= 3)
    const { state } = watched.source
    assert.equal(state.on, false)
    assert.equal(state.reason, `cannot initialise NVML (${nvml.library}): Driver Not Loaded`)
    assert.match(state.hint, /modprobe nvidia/)
    assert.equal(watched.warnings.length, 1)
    nvml.says(two)
    await until(() => watched.source.state.on)
    nvml.says(['count_status 18'])
    await until(() => !watched.source.state.on)
    assert.match(
      watched.source.state.reason,
      /cannot list the GPUs with NVML .*: Driver\/library version mismatch/,
    )
    assert.match(watched.source.state.hint, /updated/)
    assert.equal(watched.warnings.length, 2)
    assert.equal(watched.source.state.devices.length, 2)
  })
})

test('a driver that hangs is asked nothing more until it answers', async () => {
  await watching(
    two,
    async (watched, nvml) => {
      await watched.round()
      nvml.hang()
      await until(() => !watched.source.state.on)
      assert.match(watched.source.state.reason, /^no response from the NVIDIA driver for 1 s$/)
      assert.match(watched.warnings[0]!, /nvidia-smi/)
      const { rounds } = watched
      const asked = nvml.log.length
      await sleep(300)
      assert.equal(nvml.log.length, asked)
      assert.equal(watched.rounds, rounds)
      assert.equal(threads(), 1)
      nvml.goOn()
      await until(() => watched.source.state.on)
      await watched.round()
    },
    { deadlineMs: 1000 },
  )
})

test('a source can be stopped while its driver hangs, and the library is shut down once that is over', async () => {
  await watching(two, async (watched, nvml) => {
    await watched.round()
    nvml.hang()
    await until(() => nvml.log.at(-1) === 'hangs')
    watched.source.stop()
    const { rounds } = watched
    nvml.goOn()
    await until(() => nvml.log.at(-1) === 'shutdown')
    await until(() => threads() === 0)
    assert.equal(watched.rounds, rounds)
  })
})

test('a host without a driver has a reason and no warning, and starts when there is one', async () => {
  const nvml = new StandInNvml(two)
  const watched = new Watched({ library: join(nvml.directory, 'later.so') })
  try {
    watched.source.start()
    await until(() => watched.source.state.reason !== '')
    const { on, reason, hint } = watched.source.state
    assert.equal(on, false)
    if (hint === '') assert.equal(reason, 'NVIDIA driver library libnvidia-ml.so.1 not found')
    else assert.match(reason, /driver is loaded/)
    assert.equal(watched.warnings.length, hint === '' ? 0 : 1)
    writeFileSync(join(nvml.directory, 'later.so'), 'no library')
    await until(() => /cannot load the NVIDIA driver library/.test(watched.source.state.reason))
    assert.match(watched.warnings.at(-1)!, /later\.so/)
  } finally {
    watched.source.stop()
    nvml.remove()
  }
})

test('a driver without a GPU is off, with nothing to fix', async () => {
  await watching(['devices 0'], async watched => {
    await until(() => watched.source.state.reason !== '')
    assert.deepEqual(watched.source.state.reason, 'the NVIDIA driver reports no GPU')
    assert.equal(watched.source.state.hint, '')
    assert.deepEqual(watched.warnings, [])
  })
})
