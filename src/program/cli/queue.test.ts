import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { attach, drain, openStore, queueDirectory } from '../../../test/helpers/disk-store.ts'
import { cleanEnvironment, svcProgram } from '../../../test/helpers/program-under-test.ts'
import { plainBatch } from '../../foundation/model/batch.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'

const native = loadNative()

interface Result {
  readonly code: number | null
  readonly out: string
  readonly talk: string
}

function svcQueue(...args: string[]): Promise<Result> {
  const child = spawn(process.execPath, [svcProgram, 'queue', ...args], {
    env: cleanEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let talk = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    talk += chunk
  })
  return new Promise(resolve => child.on('close', code => resolve({ code, out, talk })))
}

/** A request of traces or logs with a resource that has an attribute (opentelemetry-proto: 1 → 1 → 1). */
function request(name: string): Buffer {
  const field = (number: number, bytes: Buffer) =>
    Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes])
  const value = field(1, Buffer.from(name))
  const attribute = Buffer.concat([field(1, Buffer.from('service.name')), field(2, value)])
  return field(1, field(1, field(1, attribute)))
}

function open(directory: string) {
  if (native instanceof Unsupported) throw new Error(native.reason)
  return openStore(directory, { lock: fd => native.flock(fd) }).store
}

/** Three batches of traces, the second one refused, and one of logs that is compressed. */
async function fill(directory: string): Promise<void> {
  const store = open(directory)
  const traces = attach(store, 'traces').queue
  for (const [i, name] of ['shop', 'cart', 'bank'].entries())
    traces.push(plainBatch('traces', i + 1, request(name), 1 << i))
  const [first, second] = [traces.take()!, traces.take()!]
  traces.putBack(first)
  traces.bury(second.batch, 'INVALID_ARGUMENT: no cart')
  traces.settle(second)
  const body = request('mail')
  attach(store, 'logs').queue.push({
    ...plainBatch('logs', 7, gzipSync(body)),
    encoding: 'gzip',
    plainBytes: body.length,
  })
  await store.close()
}

async function left(directory: string, signal: Signal): Promise<number> {
  const store = open(directory)
  const { queue } = attach(store, signal)
  const { recoveredItems } = queue
  await store.close()
  return recoveredItems
}

test('ls says what waits, for people and as JSON, and who has it open', async t => {
  const directory = queueDirectory(t)
  await fill(directory)
  const { code, out, talk } = await svcQueue('ls', '--directory', directory)
  assert.deepEqual([code, talk], [0, ''])
  assert.match(
    out,
    new RegExp(`^The queue in ${directory}: no agent has it open\\.\n\nSIGNAL +BATCHES +ITEMS`),
  )
  assert.match(out, /^traces +2 +4 +\d+ B +\d+s +1 +none$/m)
  assert.match(out, /^logs +1 +7 +\d+ B +\d+s +0 +none$/m)
  assert.match(out, /^metrics +0 +0 +.* - +0 +none$/m)
  const json = JSON.parse((await svcQueue('--json', '--directory', directory, '--signal', 'traces')).out)
  assert.equal(json.agent, null)
  assert.deepEqual(Object.keys(json.signals), ['traces'])
  const { batches, items, rejected, damaged_places } = json.signals.traces
  assert.deepEqual([batches, items, rejected, damaged_places], [2, 4, { batches: 1, items: 2 }, 0])

  const store = open(directory)
  const beside = await svcQueue('ls', '--directory', directory)
  assert.match(beside.out, new RegExp(`the agent with pid ${process.pid} has it open`))
  await store.close()
})

test('export copies it as OTLP JSON, one request a line, beside an agent too', async t => {
  const directory = queueDirectory(t)
  await fill(directory)
  const store = open(directory)
  const file = join(directory, 'copy.json')
  const { code, out, talk } = await svcQueue('export', '--directory', directory, '--to', file)
  assert.deepEqual([code, out, talk], [0, '', `copied 3 batches with 11 items to ${file}\n`])
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const lines = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const nameIn = (parts: { resource: { attributes: { value: { stringValue: string } }[] } }[]) =>
    parts[0]!.resource.attributes[0]!.value.stringValue
  assert.deepEqual([nameIn(lines[0].resourceSpans), nameIn(lines[1].resourceSpans)], ['shop', 'bank'])
  assert.equal(nameIn(lines[2].resourceLogs), 'mail')
  const dead = await svcQueue('export', '--directory', directory, '--to', '-', '--dead')
  assert.match(dead.out, /^\{"resourceSpans":.*cart.*\}\n$/)
  assert.match(
    dead.talk,
    /^1 batch rejected: "INVALID_ARGUMENT: no cart"\ncopied 1 batch with 2 items to standard output\n$/,
  )
  const again = await svcQueue('export', '--directory', directory, '--to', file)
  assert.deepEqual(
    [again.code, again.talk],
    [2, `svc: cannot write ${file}: the file exists; choose another name\n`],
  )
  await store.close()
})

test('a reader that has enough of an export is no failure', async t => {
  const directory = queueDirectory(t)
  const store = open(directory)
  const { queue } = attach(store, 'traces')
  for (let n = 0; n < 3000; n++) queue.push(plainBatch('traces', 1, request('shop'), 1))
  await store.close()
  const command = 'set -o pipefail; "$0" "$1" queue export --directory "$2" --to - | head -n 1'
  const child = spawn('bash', ['-c', command, process.execPath, svcProgram, directory])
  let said = ''
  child.stdout.resume()
  child.stderr.on('data', chunk => {
    said += chunk
  })
  const code = await new Promise(resolve => child.on('close', resolve))
  assert.deepEqual([code, said], [0, ''])
})

test('verify names each damage, and a torn end only where no agent writes', async t => {
  const directory = queueDirectory(t)
  await fill(directory)
  const whole = await svcQueue('verify', '--directory', directory)
  assert.equal(whole.code, 0)
  assert.match(whole.out, /^traces: 2 batches with 4 items whole, and 1 rejected batch; no damage$/m)
  const at = join(directory, 'v1/default/traces')
  const file = join(at, readdirSync(at).find(name => name.endsWith('.seg'))!)
  const bytes = readFileSync(file)
  const place = bytes.indexOf('shop')
  bytes.writeUInt8(bytes[place]! ^ 1, place)
  writeFileSync(file, bytes)
  const damaged = await svcQueue('verify', '--directory', directory)
  assert.equal(damaged.code, 1)
  assert.match(damaged.out, new RegExp(`^${file}: at byte 48: \\d+ damaged bytes, with 1 item$`, 'm'))
  assert.match(damaged.out, /^traces: 1 batch with 3 items whole, .*; damage in 1 place$/m)
  const told = await svcQueue('verify', '--directory', directory, '--signal', 'traces', '--json')
  assert.equal(told.code, 1)
  const [{ items, faults }] = JSON.parse(told.out).signals
  assert.deepEqual([items, faults.length, faults[0].file, faults[0].offset], [3, 1, file, 48])

  const logs = join(directory, 'v1/default/logs')
  const last = join(logs, readdirSync(logs).find(name => name.endsWith('.seg'))!)
  truncateSync(last, statSync(last).size - 5)
  const torn = await svcQueue('verify', '--directory', directory, '--signal', 'logs')
  assert.equal(torn.code, 1)
  assert.match(torn.out, /at byte 48: \d+ bytes of an incomplete batch; it was never accepted/)
})

test('drop refuses beside an agent and asks before, then says what went', async t => {
  const directory = queueDirectory(t)
  await fill(directory)
  const store = open(directory)
  const beside = await svcQueue('drop', '--directory', directory, '--yes')
  assert.equal(beside.code, 1)
  assert.match(
    beside.talk,
    new RegExp(`cannot drop from the queue in ${directory}: process ${process.pid} has it open; stop`),
  )
  await store.close()
  const unsure = await svcQueue('drop', '--directory', directory)
  assert.equal(unsure.code, 2)
  assert.match(
    unsure.talk,
    /cannot ask whether to drop 3 batches \(4 items of traces, 7 items of logs\) in .*; use --yes/,
  )
  assert.equal(await left(directory, 'traces'), 4)

  const old = await svcQueue('drop', '--directory', directory, '--yes', '--before', '1h')
  assert.deepEqual([old.code, old.out], [0, `Nothing to drop: 0 batches in ${directory}.\n`])
  const one = await svcQueue('drop', '--directory', directory, '--yes', '--signal', 'traces')
  assert.deepEqual([one.code, one.out], [0, `Dropped 2 batches (4 items of traces) in ${directory}.\n`])
  assert.deepEqual([await left(directory, 'traces'), await left(directory, 'logs')], [0, 7])
  const dead = await svcQueue('drop', '--directory', directory, '--yes', '--dead')
  assert.equal(dead.out, `Dropped 1 rejected batch (2 items of traces) in ${directory}.\n`)
  const rest = await svcQueue('drop', '--directory', directory, '--yes', '--before', '2100-01-01T00:00:00Z')
  assert.equal(rest.out, `Dropped 1 batch (7 items of logs) in ${directory}.\n`)
  assert.equal(await left(directory, 'logs'), 0)
  const after = open(directory)
  assert.deepEqual(drain(attach(after, 'logs').queue), [])
  await after.close()
})

test('what is wrong with the words is said, and nothing is made', async t => {
  const directory = queueDirectory(t)
  const check = async (args: string, code: number, talk: RegExp) => {
    const result = await svcQueue(...args.split(' '))
    assert.deepEqual([result.code, result.out], [code, ''])
    assert.match(result.talk, talk)
  }
  await check('lst', 2, /unknown action "lst"; did you mean ls\? The actions are ls, verify, export, drop/)
  await check('ls --yes', 2, /--yes is not a flag of "svc queue ls"/)
  await check(
    `export --directory ${directory}/none`,
    1,
    /no such directory; select the right one with --directory/,
  )
  await check(`ls --directory ${directory}`, 1, /it contains no queue \(no directory v1\)/)
  await check(
    `ls --directory ${directory} --signal trace`,
    2,
    /unknown signal "trace"; did you mean traces\?/,
  )
  assert.ok(!existsSync(join(directory, 'none')))
  await fill(directory)
  await check(`export --directory ${directory}`, 2, /needs --to FILE/)
  await check(
    `drop --directory ${directory} --before yesterday`,
    2,
    /neither a duration \(2h, 30m, 7d\) nor a time/,
  )
})
