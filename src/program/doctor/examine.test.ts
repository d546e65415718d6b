// owns: host
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { loadConfig, notBuiltFeatures } from '../../config/index.ts'
import { examine, topics } from './examine.ts'
import { judgeFlags, judgeNode } from './runtime.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-examine-'))
after(() => rmSync(directory, { recursive: true }))

function configured(text: string, env: Record<string, string> = {}) {
  const path = join(directory, 'config.yaml')
  writeFileSync(path, text)
  return loadConfig({ path, explicit: true, env })
}

/** Whatever runs on this host. */
const ofFile = { isOfFile: true } as const

const quiet = 'self_telemetry: {listen: "127.0.0.1:0"}\n'

test('all groups are examined in their order, or the one that is asked for', async () => {
  const all = await examine(configured(quiet), ofFile)
  assert.deepEqual(
    all.groups.map(({ topic }) => topic),
    topics,
  )
  const states = all.groups.flatMap(({ checks }) => checks).map(({ state }) => state)
  assert.equal(all.ok, !states.some(state => state === 'missing' || state === 'limited'))
  for (const topic of topics) {
    const one = await examine(configured(quiet), { ...ofFile, topic })
    assert.deepEqual(
      one.groups.map(group => group.topic),
      [topic],
    )
    assert.ok(one.groups[0]!.checks.length > 0, topic)
  }
})

test('what is not needed is a note at most', async () => {
  const check = async (text: string, topic: 'traces' | 'processes' | 'profiles' | 'kernel', why: RegExp) => {
    const { ok, groups } = await examine(configured(quiet + text), { ...ofFile, topic })
    assert.ok(ok)
    for (const { state, detail } of groups[0]!.checks) {
      assert.ok(state === 'ok' || state === 'note', state)
      if (state === 'note') assert.match(detail, why)
    }
  }
  for (const topic of ['traces', 'processes', 'profiles', 'kernel'] as const) {
    await check('mode: collector\n', topic, /mode is collector/)
    await check('agent: {ebpf: {enabled: false}}\n', topic, /agent\.ebpf is off/)
  }
  await check('agent: {profiling: {enabled: false}}\n', 'profiles', /agent\.profiling is off/)
})

test('the configuration: mistakes, what is asked for and not built, and what is by default', async () => {
  const faults = async (text: string) => {
    const { groups } = await examine(configured(text), { ...ofFile, topic: 'configuration' })
    return groups[0]!.checks.map(({ state, fault }) => fault ?? state)
  }
  assert.deepEqual(await faults('a: 1\nb: 2\n'), ['invalid'])
  assert.deepEqual((await faults('')).slice(0, 1), ['ok'])
  const asked = configured('pipeline: {export: {queue: {enabled: true}}}\n')
  const { groups } = await examine(asked, { ...ofFile, topic: 'configuration' })
  const told = groups[0]!.checks.filter(({ fault }) => fault === 'not_built')
  const explicit = notBuiltFeatures(asked.config, asked.origins).filter(feature => feature.explicit)
  assert.deepEqual(
    told.map(({ state, detail }) => [state, detail]),
    explicit.map(({ key, why }) => ['limited', `${key} is set: ${why}`]),
  )
})

test('the runtime is judged by its line, and by the bounds on its heap', () => {
  const check = (version: string, want: string) => {
    const found = judgeNode(version)
    assert.equal('ok' in found ? 'ok' : found.fault, want)
  }
  check('v24.21.0', 'ok')
  check('v22.18.0', 'ok')
  check('v20.20.2', 'unsupported')
  check('v20.14.0', 'too_old')
  check('v18.0.0', 'too_old')
  const bounds = ['--optimize-for-size', '--max_semi_space_size=1', '--max-old-space-size=64']
  assert.deepEqual(judgeFlags(bounds), { ok: 'they are set' })
  assert.deepEqual(judgeFlags(bounds.slice(1)), {
    fault: 'unbounded',
    detail: 'started without --optimize-for-size',
  })
})
