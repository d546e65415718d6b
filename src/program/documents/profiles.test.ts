import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../config/index.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Profile } from '../../foundation/model/profile.ts'
import { resource } from '../../foundation/model/resource.ts'
import type { ProfilesLine } from '../../view/api/ui/documents.ts'
import type { FlameQuery, ProfileKind } from '../../view/api/ui/source.ts'
import { ProfileWindow } from '../../view/window/profile-window.ts'
import type { DocumentContext } from './document-context.ts'
import { flame, profiles } from './profiles.ts'

const shop = resource({ 'service.name': 'shop' })
const query: FlameQuery = {
  kind: 'cpu',
  service: '',
  since_ms: 0,
  until_ms: 0,
  base_since_ms: 0,
  base_until_ms: 0,
  limit: 100,
}

/** One that began so long ago. */
function profile(agoMs: number, name: string, value: number, seconds = 10): Profile {
  const frames = [{ name, file: 'shop.js', line: 1 }]
  return {
    kind: 'cpu',
    unit: 'nanoseconds',
    startUs: (Date.now() - agoMs) * 1000,
    durationUs: seconds * 1e6,
    samples: [{ frames, value, attributes: new Attributes() }],
  }
}

function open(env: Record<string, string> = {}, profiling: object = { faults: [], profiler: {} }) {
  const nowhere = '/nonexistent'
  const loaded = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env })
  assert.deepEqual(loaded.problems, [])
  const window = new ProfileWindow({ maxBytes: 1 << 20, windowMs: 86_400_000, now: Date.now })
  return {
    parts: { loaded: () => loaded, profiling, window: { profiles: window } } as unknown as DocumentContext,
    window,
  }
}

async function lineOf(live: ReturnType<typeof profiles>): Promise<ProfilesLine> {
  const lines = await live.next()
  assert.equal(lines.length, 1)
  return lines[0]!
}

test('a line is told at once, and then whenever there is another profile', async () => {
  const { parts, window } = open()
  const live = profiles(parts, 'cpu', '')
  const empty = await lineOf(live)
  assert.deepEqual([empty.kinds, empty.intervals, empty.services], [[], [], []])
  assert.match(empty.no_data_reason, /The first one appears a few seconds after the start/)
  assert.deepEqual(await live.next(), [])
  const first = profile(30_000, 'a', 5)
  window.add(shop, first)
  const line = await lineOf(live)
  const fromMs = first.startUs / 1000
  assert.deepEqual(line, {
    kinds: ['cpu'],
    unit: 'nanoseconds',
    from_ms: fromMs,
    to_ms: fromMs + 10_000,
    intervals: [{ from_ms: fromMs, to_ms: fromMs + 10_000, value: 5 }],
    services: [{ name: 'shop', value: 5 }],
    no_data_reason: '',
  })
  assert.deepEqual(await live.next(), [])
  const other = await lineOf(profiles(parts, 'cpu', 'cart'))
  assert.deepEqual([other.intervals, other.no_data_reason], [[], 'cart has no samples in this window.'])
})

test('there are never too many intervals for a line, and none is left out', async () => {
  const { parts, window } = open()
  for (let i = 0; i < 3000; i++) window.add(shop, profile((4000 - i) * 1000, 'a', 1, 1))
  const { intervals, from_ms, to_ms } = await lineOf(profiles(parts, 'cpu', 'shop'))
  assert.ok(intervals.length > 180 && intervals.length <= 360)
  assert.equal(
    intervals.reduce((sum, { value }) => sum + value, 0),
    3000,
  )
  assert.deepEqual([intervals[0]?.from_ms, intervals.at(-1)?.to_ms], [from_ms, to_ms])
})

test('a flame graph is of the time that was asked for, and compared with another time', () => {
  const { parts, window } = open()
  window.add(shop, profile(60_000, 'old', 3))
  window.add(shop, profile(20_000, 'new', 5))
  assert.equal(flame(parts, query).total, 8)
  assert.equal(flame(parts, { ...query, since_ms: 40_000 }).total, 5)
  assert.equal(flame(parts, { ...query, until_ms: 40_000 }).total, 3)
  const compared = flame(parts, { ...query, since_ms: 40_000, base_since_ms: 70_000, base_until_ms: 40_000 })
  assert.deepEqual([compared.total, compared.base_total, compared.unit], [5, 3, 'nanoseconds'])
  assert.deepEqual(compared.base, [3, 3, 0, 3])
})

test('names that would turn or end a line are shown without that', () => {
  const { parts, window } = open()
  window.add(shop, profile(20_000, 'a\n\u202eb', 1))
  window.add(shop, profile(20_000, '[x\n: stripped]', 1))
  const { names, missing_names: missing } = flame(parts, query)
  assert.deepEqual(
    [names, missing[0]?.reason],
    [['all', 'shop', 'a\ufffd\ufffdb', '[x\ufffd: stripped]'], 'x\ufffd: stripped'],
  )
})

test('who sees nothing is told why, and what fixes it', async () => {
  const check = async (env: Record<string, string>, kind: ProfileKind, want: RegExp, profiling?: object) =>
    assert.match((await lineOf(profiles(open(env, profiling).parts, kind, ''))).no_data_reason, want)
  await check({ SVC_AGENT_PROFILING_ENABLED: 'false' }, 'cpu', /set agent\.profiling\.enabled: true/)
  await check({ SVC_AGENT_EBPF_ENABLED: 'false' }, 'cpu', /set agent\.ebpf\.enabled: true/)
  await check({ SVC_MODE: 'collector' }, 'cpu', /set mode: agent/)
  await check({}, 'off_cpu', /set agent\.profiling\.off_cpu: true/)
  await check({}, 'memory', /set agent\.profiling\.memory: true/)
  const faults = [{ subsystem: 'profiles', reason: 'the kernel refuses', hint: 'see svc doctor profiles' }]
  await check({}, 'cpu', /Profiling is not running: the kernel refuses; see svc doctor profiles/, { faults })
  await check({}, 'cpu', /Profiling is degraded: the kernel refuses/, { faults, profiler: {} })
})
