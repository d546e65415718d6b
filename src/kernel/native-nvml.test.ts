import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { nativeOrThrow } from '../../test/helpers/native.ts'
import { StandInNvml } from '../../test/helpers/stand-in-nvml/stand-in-nvml.ts'
import type { NvmlAnswer, NvmlHandle } from './native.ts'

const native = nativeOrThrow()

/** Waits for the answer, as its user does. */
function answerOf(nvml: NvmlHandle): Promise<NvmlAnswer> {
  return new Promise((resolve, reject) => {
    const alive = setTimeout(() => reject(new Error('no answer for a minute')), 60_000)
    const poll = native.pollStart(nvml.fd, () => {
      const answer = native.nvmlTake(nvml)
      if (answer === undefined) return
      clearTimeout(alive)
      native.pollStop(poll)
      resolve(answer)
    })
  })
}

test('wrong arguments are errors', () => {
  const wrong = native as unknown as Record<string, (...values: unknown[]) => unknown>
  for (const paths of [undefined, [], 'libc.so.6', [''], [1], ['x'.repeat(128)], Array(9).fill('x')])
    assert.throws(() => wrong.nvmlOpen!(paths), TypeError)
  for (const call of ['nvmlAsk', 'nvmlTake', 'nvmlClose'])
    for (const handle of [undefined, {}, native.clock()])
      assert.throws(() => wrong[call]!(handle, true), TypeError)
})

test('there is one question at a time, one answer to each, and none after the end', async () => {
  const stand = new StandInNvml(['devices 1', 'driver 1'])
  const nvml = native.nvmlOpen([join(stand.directory, 'absent.so'), stand.library])
  try {
    assert.equal(native.nvmlTake(nvml), undefined)
    stand.hang()
    native.nvmlAsk(nvml, true)
    assert.throws(() => native.nvmlAsk(nvml, true), { code: 'EBUSY' })
    assert.equal(native.nvmlTake(nvml), undefined)
    stand.goOn()
    const answer = await answerOf(nvml)
    assert.equal(answer.failed, '')
    assert.equal(answer.library, stand.library)
    assert.equal(answer.devices.length, 1)
    assert.equal(answer.devices[0]!.bus, '00000000:00:00.0')
    assert.equal(native.nvmlTake(nvml), undefined)
  } finally {
    native.nvmlClose(nvml)
    native.nvmlClose(nvml)
    assert.throws(() => native.nvmlAsk(nvml, true), { code: 'EBADF' })
    stand.goOn()
    while (stand.log.at(-1) !== 'shutdown') await new Promise(resolve => setTimeout(resolve, 5))
    stand.remove()
  }
})

test('libraries that are absent, broken or of others are told apart', async () => {
  const failure = async (paths: readonly string[]) => {
    const nvml = native.nvmlOpen(paths)
    native.nvmlAsk(nvml, false)
    const { failed, error } = await answerOf(nvml)
    native.nvmlClose(nvml)
    return `${failed}: ${error}`
  }
  assert.match(await failure(['libsvc-absent.so', '/nowhere/lib.so']), /^find: libsvc-absent\.so: /)
  assert.match(await failure(['libsvc-absent.so', '/etc/passwd']), /^load: \/etc\/passwd: /)
  assert.equal(await failure(['libc.so.6']), 'load: libc.so.6 lacks functions of NVML')
})

test('a process ends while the driver hangs, and handles may be dropped at any time', () => {
  const stand = new StandInNvml(['devices 1'])
  try {
    stand.hang()
    const script = `import { loadNative } from ${JSON.stringify(join(import.meta.dirname, 'native.ts'))}
      const native = loadNative()
      for (let i = 0; i < 50; i++) {
        const nvml = native.nvmlOpen([${JSON.stringify(stand.library)}])
        if (i % 2) native.nvmlAsk(nvml, true)
        native.pollStop(native.pollStart(nvml.fd, () => undefined))
        if (i % 10 === 0) gc()
      }
      gc()
      console.log('done')`
    const flags = ['--expose-gc', '--no-warnings', '--input-type=module', '-e', script]
    const printed = execFileSync(process.execPath, flags, { encoding: 'utf8', timeout: 60_000 })
    assert.equal(printed, 'done\n')
  } finally {
    stand.remove()
  }
})
