// owns: process
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { afterEach, test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { lowerPriority, raisePriority } from './priority.ts'

const usual = getPriority()
const threads = () => readdirSync('/proc/self/task').map(Number)

afterEach(() => {
  for (const thread of threads()) setPriority(thread, usual)
})

test('the main thread has a higher priority, helpers of the runtime and children the usual one', {
  skip: withoutRoot,
}, async () => {
  for (const thread of threads()) setPriority(thread, 0)
  raisePriority()
  const [main, ...helpers] = threads()
    .sort((a, b) => Number(b === process.pid) - Number(a === process.pid))
    .map(thread => getPriority(thread))
  assert.equal(main, -10)
  assert.deepEqual([...new Set(helpers)], [0])
  const child = spawn('sleep', ['60'])
  await once(child, 'spawn')
  try {
    lowerPriority(child.pid)
    assert.equal(getPriority(child.pid), 0)
  } finally {
    child.kill()
    await once(child, 'exit')
  }
})

test('a priority that somebody chose stays', () => {
  setPriority(0, 3)
  raisePriority()
  assert.equal(getPriority(), 3)
})

test("a session of its own is raised as a whole, and nobody else's", {
  skip: withoutRoot || (existsSync('/proc/self/autogroup') ? false : 'needs a kernel with autogroups'),
}, () => {
  const module = JSON.stringify(new URL('./priority.ts', import.meta.url).href)
  const script = `
    const { raisePriority } = await import(${module})
    raisePriority()
    const { readFileSync } = await import('node:fs')
    console.log(readFileSync('/proc/self/autogroup', 'utf8').replace(/.* nice /, '').trim())`
  const niceOf = (...before: string[]) => {
    const [command, ...args] = [...before, process.execPath, '--input-type=module', '-e', script]
    return Number(execFileSync(command!, args, { encoding: 'utf8' }))
  }
  assert.equal(niceOf('setsid', '--wait'), -10)
  assert.equal(niceOf('setsid', '--wait', 'sh', '-c', '"$0" "$@"; exit $?'), 0)
})
