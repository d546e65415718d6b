// owns: host
import assert from 'node:assert/strict'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../../test/helpers/program.ts'
import { createLogger } from '../foundation/lib/logger.ts'
import { RemoteFiles } from './remote-files.ts'

/** With what it logged. `program` stands in for the probe. */
function remoteFiles(
  t: TestContext,
  options: { program?: string | undefined } = {},
): [RemoteFiles, string[]] {
  const logged: string[] = []
  const log = createLogger({ level: 'warn', format: 'json', write: line => logged.push(line) })
  const files = new RemoteFiles({ log, ...options })
  // The probe keeps no process alive that only waits for it.
  const awake = setInterval(() => {}, 1000)
  t.after(() => {
    clearInterval(awake)
    files.close()
  })
  return [files, logged]
}

/** Processes that this one started. */
function children(): readonly number[] {
  return readFileSync('/proc/thread-self/children', 'latin1').trim().split(' ').map(Number)
}

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-far-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('file systems, files and directories are read as they would be here', async t => {
  const [files] = remoteFiles(t)
  const dir = directory(t)
  const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251))
  const odd = Buffer.concat([Buffer.from(`${dir}/a\nb \xff`, 'latin1')])
  writeFileSync(odd, content)
  writeFileSync(join(dir, 'empty'), '')
  mkdirSync(join(dir, 'sub'))
  const here = statfsSync(dir)
  const { bsize, blocks, files: inodes } = await files.statfs(dir)
  assert.deepEqual([bsize, blocks, inodes], [here.bsize, here.blocks, here.files])
  const read = await files.read(odd, content.length)
  assert.ok(read.bytes.equals(content))
  assert.equal(read.mtimeSeconds, Math.floor(statSync(odd).mtimeMs / 1000))
  assert.equal((await files.read(join(dir, 'empty'), 0)).bytes.length, 0)
  assert.deepEqual(await files.list(dir), ['a\nb \ufffd', 'empty', 'sub'])
  assert.deepEqual(await files.list(join(dir, 'sub')), [])
  const many = await Promise.all(Array.from({ length: 500 }, (_, i) => files.read(odd, content.length + i)))
  assert.ok(many.every(({ bytes }) => bytes.equals(content)))
})

test('what cannot be read has a reason in words', async t => {
  const [files] = remoteFiles(t)
  const dir = directory(t)
  writeFileSync(join(dir, 'file'), 'four')
  symlinkSync('loop', join(dir, 'loop'))
  const check = (answer: Promise<unknown>, message: string) =>
    assert.rejects(answer, { name: 'RemoteFileError', message })
  await check(files.statfs(join(dir, 'nothing')), 'no such file or directory')
  await check(files.read(dir, 10), 'is a directory')
  await check(files.read('/dev/null', 10), 'invalid argument')
  await check(files.read(join(dir, 'file'), 3), 'file too large')
  await check(files.read(join(dir, 'loop'), 3), 'too many levels of symbolic links')
  await check(files.list(join(dir, 'file')), 'not a directory')
  await check(files.list('x'.repeat(4095)), 'file name too long')
  await check(files.statfs('x'.repeat(5000)), 'file name too long')
})

test('a probe that ends is started again, and those who waited are told', async t => {
  const restartMs = 1000
  let isSoon = false
  for (let round = 0; round < 5 && !isSoon; round++) {
    const [files, logged] = remoteFiles(t)
    const before = children()
    const started = performance.now()
    const asked = files.statfs('/')
    const probe = children().filter(pid => !before.includes(pid))
    assert.equal(probe.length, 1)
    process.kill(probe[0]!, 'SIGKILL')
    // It may have answered before.
    await asked.catch(error => assert.equal(error.message, 'the probe ended'))
    await until('the end is seen', 30_000, () => logged.length > 0)
    assert.match(logged[0]!, /"reason":"SIGKILL"/)
    const again = files.statfs('/')
    // On a busy host it may be time for the next one already.
    isSoon = performance.now() - started < restartMs
    if (isSoon) await assert.rejects(again, { message: 'the probe ended' }, 'not at once')
    else await again.catch(() => {})
    await new Promise(resolve => setTimeout(resolve, restartMs + 50))
    assert.ok((await files.statfs('/')).blocks > 0)
  }
  assert.ok(isSoon, 'the end was never seen in time')
})

test('where the probe is missing or is none, there is a reason and a line in the log', async t => {
  const check = async (program: string | undefined, reason: string, line: RegExp) => {
    const [files, logged] = remoteFiles(t, { program })
    await assert.rejects(files.statfs('/'), { message: reason })
    await assert.rejects(files.statfs('/'), { name: 'RemoteFileError' })
    assert.equal(logged.length, 1)
    assert.match(logged[0]!, line)
  }
  await check(undefined, 'no probe', /svc-probe is not installed next to the agent/)
  await check(join(directory(t), 'nothing'), 'the probe ended', /ENOENT/)
  await check('/bin/false', 'the probe ended', /exit status 1|EPIPE/)
  await check('/bin/cat', 'the probe ended', /unexpected output/)
})

test('a close waits for nobody', async t => {
  const silent = join(directory(t), 'silent')
  writeFileSync(silent, '#!/bin/sh\nexec /bin/sleep 1000\n')
  chmodSync(silent, 0o755)
  const [files] = remoteFiles(t, { program: silent })
  const answers = [files.statfs('/'), files.read('/', 1), files.list('/')].map(answer =>
    answer.catch((error: Error) => error.message),
  )
  await assert.rejects(files.statfs('/'), { message: 'no answer yet' })
  const before = performance.now()
  files.close()
  assert.deepEqual(await Promise.all(answers), Array(3).fill('the agent is stopping'))
  assert.ok(performance.now() - before < 10_000)
  await assert.rejects(files.statfs('/'), { message: 'the agent is stopping' })
})
