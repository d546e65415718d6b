import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { StandInNvml } from '../../../test/helpers/stand-in-nvml/stand-in-nvml.ts'
import { defaults } from '../../config/index.ts'
import { gpus } from './gpus.ts'

/** What an agent makes of the GPUs, in a process of its own, whose linker finds the stand-in first. */
function measured(nvml: StandInNvml): { warnings: string[]; faults: string[]; series: string[] } {
  const from = (path: string) => JSON.stringify(import.meta.resolve(path))
  const script = `
    import { Gpu } from ${from('./gpus.ts')}
    import { defaults } from ${from('../../config/index.ts')}
    import { ProcessTable } from ${from('../../identity/entities/process-table.ts')}
    import { createLogger } from ${from('../../foundation/lib/logger.ts')}
    import { Attributes } from ${from('../../foundation/model/attributes.ts')}
    import { resource } from ${from('../../foundation/model/resource.ts')}
    const series = new Set()
    const add = ({ attributes }, scope, { name }) =>
      series.add([attributes.get('process.pid') ?? 'host', name].join(' '))
    const lines = []
    const about = { hostName: 'h', hostId: 'h', bootId: 'b', version: '1', attributes: new Attributes() }
    const gpu = new Gpu({
      config: defaults(),
      pipeline: { intake: () => ({ add }) },
      processes: new ProcessTable(about),
      host: { resource: resource({ 'host.name': 'h' }) },
      log: createLogger({ level: 'warn', format: 'json', write: line => lines.push(line) }),
    })
    while (gpu.source.state.reason === '') await new Promise(resolve => setTimeout(resolve, 10))
    await new Promise(resolve => setImmediate(resolve))
    const warnings = lines.map(line => JSON.parse(line).msg)
    const faults = gpu.faults.map(({ reason }) => reason)
    gpu.stop()
    console.log(JSON.stringify({ warnings, faults, series: [...series] }))`
  const output = execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', script], {
    env: { ...process.env, LD_LIBRARY_PATH: nvml.directory },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 100_000,
  })
  return JSON.parse(output.toString())
}

test('the host and the processes that run have their metrics, and a GPU that is lost is not taken for all', () => {
  const none = 4_294_967_295
  const beyond = 4_194_305 // no process has this number
  const nvml = new StandInNvml([
    'devices 2',
    'status 1 15',
    ...[process.pid, beyond].map(pid => `compute ${pid} 1048576 ${none} ${none}`),
  ])
  try {
    const { warnings, faults, series } = measured(nvml)
    assert.deepEqual(warnings, ['some GPUs are not monitored'])
    assert.deepEqual(faults, ['GPU 1 (Stand-in): GPU is lost'])
    assert.ok(series.includes('host hw.gpu.utilization'), series.join())
    const ofProcesses = series.filter(each => !each.startsWith('host '))
    assert.deepEqual(ofProcesses, [`${process.pid} svc.gpu.process.memory.usage`])
    nvml.says(['count_status 999'])
    assert.deepEqual(measured(nvml).warnings, ['GPUs are not monitored'])
  } finally {
    nvml.remove()
  }
})

test('GPUs are off where a key says so, and missing where svc itself lacks what it takes', () => {
  const check = (gpu: object, lacks: string, want: readonly [state: string, detail: string]) => {
    const config = defaults()
    const own = { source: undefined, lacks, faults: [] } as unknown as Parameters<
      NonNullable<typeof gpus.state>
    >[0]
    const asked = { ...config, agent: { ...config.agent, gpu: { ...config.agent.gpu, ...gpu } } }
    const { state, detail } = gpus.state!(own, asked)
    assert.deepEqual([state, detail], want)
  }
  check({}, 'the native addon is missing', ['none', 'the native addon is missing'])
  check({ enabled: false }, '', ['off', 'agent.gpu.enabled is false'])
  check({ nvidia: false }, '', ['off', 'agent.gpu.nvidia is false'])
})
