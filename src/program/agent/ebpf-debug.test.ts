// owns: host
import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { compileBpf, withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { Lab } from '../../../test/helpers/lab.ts'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import { loadConfig } from '../../config/index.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { BpfObject } from '../../kernel/bpf-object.ts'
import { EbpfDebug, ends } from './ebpf-debug.ts'

interface Line {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

function configured(env: Readonly<Record<string, string>>) {
  const { config, problems } = loadConfig({
    explicit: false,
    cwd: '/nonexistent',
    systemFile: '/nonexistent',
    env,
  })
  assert.deepEqual(problems, [])
  return config
}

const off = configured({})
const on = configured({ SVC_AGENT_EBPF_DEBUG: 'true' })

function open(t: TestContext, config = off) {
  const lines: Line[] = []
  const log = createLogger({ level: 'info', format: 'json', write: line => lines.push(JSON.parse(line)) })
  const debug = new EbpfDebug({ config, log, everyMs: 20 })
  t.after(() => debug.stop())
  return { debug, lines, change: (to: typeof off) => debug.prepare(to).commit() }
}

/** Descriptors of this process that have the kernel measure programs. Other processes may hold some as well. */
function measuring(): number {
  return readdirSync('/proc/self/fd').filter(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('bpf-stats')
    } catch {
      return false // the one that the directory was read by
    }
  }).length
}

test('of a long log of the verifier both ends are kept', () => {
  assert.equal(ends('short'), 'short')
  const long = `${'a'.repeat(2048)}${'b'.repeat(60_000)}${'c'.repeat(2048)}`
  assert.equal(ends(long), `${'a'.repeat(2048)}\n[...]\n${'c'.repeat(2048)}`)
})

test('the kernel measures programs while debug is on, and no longer', { skip: withoutBpf }, t => {
  const { debug, change } = open(t)
  const check = (config: typeof off, want: number) => {
    change(config)
    assert.deepEqual([measuring(), debug.measures], [want, want === 1])
  }
  assert.deepEqual([measuring(), debug.measures], [0, false])
  for (let i = 0; i < 3; i++) {
    check(on, 1)
    check(on, 1)
    debug.prepare(off).abort()
    assert.equal(measuring(), 1)
    check(configured({ SVC_AGENT_EBPF_DEBUG: 'true', SVC_AGENT_EBPF_ENABLED: 'false' }), 0)
    check(configured({ SVC_AGENT_EBPF_DEBUG: 'true', SVC_MODE: 'collector' }), 0)
    check(off, 0)
  }
  check(on, 1)
  debug.stop()
  assert.equal(measuring(), 0)
})

test('the log tells what each program ran and took since it was told last', { skip: withoutBpf }, async t => {
  const lab = new Lab()
  t.after(() => lab.object.close())
  lab.object.attach('svc_burst')
  const { lines, change } = open(t, on)
  const told = () => lines.filter(({ msg }) => msg === 'eBPF program statistics')
  const sum = () => told().reduce((runs, line) => runs + Number(line.runs), 0)
  const seen = async (runs: number) => {
    const untilMs = performance.now() + 20_000
    while (sum() < runs) {
      assert.ok(performance.now() < untilMs, `${sum()} of ${runs} runs were told`)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
  // It runs at system calls of the whole host.
  const ran = () => lab.object.programs().find(({ name }) => name === 'svc_burst')!.runCount
  for (let i = 0; i < 10; i++) lab.emit(1)
  await seen(10)
  for (const until = told().length + 3; told().length < until; ) await seen(sum() + 1)
  assert.ok(sum() <= ran(), 'no run is told twice')
  for (const line of told()) {
    assert.deepEqual([line.program, line.type, line.level], ['svc_burst', 'raw_tracepoint', 'info'])
    assert.ok(Number(line.ns_per_run) > 0 && Number(line.cpu_percent) >= 0)
  }
  // What ran before is not told once more by one that is switched on anew.
  change(off)
  const before = ran()
  lines.length = 0
  change(on)
  lab.emit(1)
  await seen(1)
  assert.ok(sum() <= ran() - before)
})

test('with debug on, the log has what the verifier said, also of programs that may be left out', {
  skip: withoutBpf,
}, t => {
  const { lines, change } = open(t)
  const load = (optional: readonly string[]) =>
    BpfObject.load(nativeOrThrow(), compileBpf('refused'), { name: 'refused', optional })
  assert.throws(() => load([]))
  assert.equal(lines.length, 0)
  change(on)
  lines.length = 0
  load(['svc_wild', 'svc_absent']).close()
  assert.throws(() => load([]))
  assert.deepEqual(
    lines.map(({ level, msg, object, program }) => [level, msg, object, program]),
    ['svc_wild', 'svc_absent', 'svc_wild'].map(program => [
      'warn',
      'the kernel rejected eBPF programs',
      'refused',
      program,
    ]),
  )
  assert.match(String(lines.at(0)?.log), /R1 invalid mem access.*processed \d+ insns/s)
  change(off)
  lines.length = 0
  assert.throws(() => load([]))
  assert.equal(lines.length, 0)
})

test('lines for debugging of the eBPF parts are written while debug is on', t => {
  const { debug, lines, change } = open(t)
  debug.log.debug('no')
  assert.equal(debug.log.enabled('debug'), false)
  change(on)
  lines.length = 0
  assert.equal(debug.log.enabled('debug'), true)
  debug.log.debug('decoding TLS of a library', { path: '/lib/x' })
  debug.log.warn('as ever')
  change(off)
  debug.log.debug('no')
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg]),
    [
      ['info', 'decoding TLS of a library'],
      ['warn', 'as ever'],
    ],
  )
})
