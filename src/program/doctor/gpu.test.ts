import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { StandInNvml } from '../../../test/helpers/stand-in-nvml/stand-in-nvml.ts'
import type { Finding } from '../../kernel/need.ts'

/** What doctor finds in a process of its own, whose linker finds the stand-in first. */
function found(nvml: StandInNvml, timeoutMs: number): Finding[] {
  const script = `
    import { gpus } from ${JSON.stringify(import.meta.resolve('./gpu.ts'))}
    import { loadConfig } from ${JSON.stringify(import.meta.resolve('../../config/index.ts'))}
    const loaded = loadConfig({ explicit: false, cwd: '/', systemFile: '/nonexistent', env: {} })
    console.log(JSON.stringify(await gpus.try({ loaded, timeoutMs: ${timeoutMs} })))`
  const output = execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', script], {
    env: { ...process.env, LD_LIBRARY_PATH: nvml.directory },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 100_000,
  })
  return JSON.parse(output.toString())
}

test('GPUs that are measured are named, one that is lost beside them, and a driver that hangs is not taken for none', () => {
  const nvml = new StandInNvml([])
  const two = ['driver 555.42', 'devices 2']
  const check = (state: readonly string[], want: Finding[], timeoutMs = 90_000) => {
    nvml.says(state)
    assert.deepEqual(found(nvml, timeoutMs), want)
  }
  try {
    check(two, [{ ok: 'driver 555.42: Stand-in, Stand-in' }])
    check(
      [...two, 'status 1 15'],
      [{ ok: 'driver 555.42: Stand-in' }, { fault: 'lost', detail: 'GPU 1 (Stand-in): GPU is lost' }],
    )
    check(['devices 0'], [{ fault: 'absent', detail: 'the NVIDIA driver reports no GPU' }])
    nvml.hang()
    check(two, [{ fault: 'silent', detail: 'it has not answered for 0.5 s' }], 500)
  } finally {
    nvml.remove()
  }
})
