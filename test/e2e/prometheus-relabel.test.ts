// owns: process
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of replacements.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileRelabel, type RelabelRule } from '../../src/signals/metrics/scraping/relabel.ts'
import type { ScrapeJob } from '../../src/signals/metrics/scraping/scrape-job.ts'
import { targetsOf } from '../../src/signals/metrics/scraping/targets.ts'
import { debianProgram, withoutProgram } from '../helpers/debian-program.ts'
import { pause } from '../helpers/program.ts'
import { type PrometheusTargets, startPrometheus } from '../helpers/prometheus-server.ts'
import { scrapeJob } from '../helpers/scrape-job.ts'
import { soak } from '../helpers/soak.ts'

// Version 2.53: that of Debian 12, 2.42, tells of dropped targets the labels that relabelling had already changed. In soak
// runs it may be that of sid, 3.x, which may need newer libraries one day.
const suite = process.env.SVC_TEST_SUITE ?? 'trixie'
const program = debianProgram({ package: 'prometheus', path: 'usr/bin/prometheus', suite })

type Labels = Record<string, string>

interface WrittenJob {
  readonly scheme: 'http' | 'https'
  readonly metrics_path: string
  readonly params: Record<string, string[]>
  readonly static_configs: readonly { readonly targets: readonly string[]; readonly labels: Labels }[]
  readonly relabel_configs: readonly Record<string, unknown>[]
}

// Names are such that version 2 knows them too, and addresses such that nobody is asked.
const address = fc.constantFrom('127.0.0.1:1', '127.0.0.2:2', '[::1]:3', '127.0.0.4', '127.0.0.1:65535')
const name = fc.constantFrom('a', 'b', 'env', '__meta_x_pod', '__meta_x_name', '__tmp', 'job', 'instance')
const known = fc.oneof(
  name,
  fc.constantFrom(
    '__address__',
    '__param_target',
    '__param_match',
    '__metrics_path__',
    '__scheme__',
    'nothing',
  ),
)
const value = fc.oneof(
  fc.constantFrom(
    '',
    'abc',
    'ab-cd-ef',
    'A.b',
    '10.20',
    'Éß-İΣ',
    '127.0.0.9:9100',
    'x;y',
    'a b',
    '$1',
    '/p q?r',
  ),
  fc.string({ unit: fc.constantFrom('a', 'b', '-', '.', '1', 'Z', ';', 'é', '😀'), maxLength: 8 }),
)
const regex = fc.constantFrom(
  ...[
    '(.*)',
    '(.+)',
    '',
    '([^-]+)-(.*)',
    '(a|b)(c)?.*',
    '(?:([a-z]+)-?){1,3}',
    '(?:(\\d+)\\.?){2}',
    '(?i)AB.*',
  ],
  ...[
    '__meta_x_(.+)',
    'a|b',
    '(\\d+)\\.(\\d+)',
    '.*',
    '(?P<first>[a-z])(?P<rest>.*)',
    '(.*);(.*)',
    'x(?i:Y)|()',
  ],
  ...['[[:alpha:]]+(?:-(\\w+))*', '\\Q10.20\\E', '.{2,}'],
)
const replacement = fc.constantFrom(
  ...[
    '$1',
    '${1}',
    'x-$2',
    '$1x',
    '${1}x$$',
    '${first}_$rest',
    '',
    'fixed',
    '$',
    '${',
    '${1',
    '$9',
    '$0',
    '$01',
  ],
  ...['$1$2', '-$first.', '30s'],
)
const separator = fc.constantFrom(';', '', '-', '$1')
const sources = fc.array(known, { maxLength: 3 })

const rule = fc.oneof(
  fc.record(
    { source_labels: sources, regex, replacement, separator, target_label: known },
    { requiredKeys: ['target_label'] },
  ),
  fc
    .record(
      { source_labels: sources, target_label: fc.constantFrom('t_$1', '${1}_t', '$1') },
      { requiredKeys: ['target_label', 'source_labels'] },
    )
    .map(written => ({ ...written, regex: '.*?([a-z]+).*' })),
  fc.record(
    {
      action: fc.constantFrom('keep', 'drop', 'Drop'),
      source_labels: sources,
      regex: fc.constantFrom('a.*', '.*b.*', '[^c]*', '.+'),
      separator,
    },
    { requiredKeys: ['action', 'source_labels', 'regex'] },
  ),
  fc.record({
    action: fc.constantFrom('keepequal', 'dropequal'),
    source_labels: sources,
    target_label: known,
  }),
  fc.record(
    {
      action: fc.constant('hashmod'),
      source_labels: sources,
      separator,
      target_label: name,
      modulus: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
    },
    { requiredKeys: ['action', 'source_labels', 'target_label', 'modulus'] },
  ),
  fc.record({
    action: fc.constant('labelmap'),
    // Each name has one origin: Prometheus takes any of several.
    regex: fc.constantFrom('__meta_x_(.+)', '(.+)', '(env|a)', '__(.*)__', '.(.)b?'),
    replacement: fc.constantFrom('m_$0', 'm${0}_$1'),
  }),
  fc.record({
    action: fc.constantFrom('labeldrop', 'labelkeep'),
    regex: fc.constantFrom('a', '[^b].*', '__.*|job|env', '.*_tmp'),
  }),
  fc.record({
    action: fc.constantFrom('lowercase', 'uppercase'),
    source_labels: sources,
    target_label: name,
  }),
  fc.record({
    target_label: fc.constantFrom('__scrape_interval__', '__scrape_timeout__'),
    replacement: fc.constantFrom('90s', '1h30m', '2d', '2w', '5s', '0s', 'soon', '1.5h', '20m'),
  }),
)

const job: fc.Arbitrary<WrittenJob> = fc.record({
  scheme: fc.constantFrom('http', 'https'),
  metrics_path: fc.constantFrom('/metrics', '/a b/(ü)', 'probe', '/p?q=1&r'),
  params: fc.dictionary(
    fc.constantFrom('target', 'match', 'm[]'),
    fc.array(value, { minLength: 1, maxLength: 2 }),
  ),
  static_configs: fc.array(
    fc.record({ targets: fc.array(address, { maxLength: 4 }), labels: fc.dictionary(name, value) }),
    { minLength: 1, maxLength: 3 },
  ),
  relabel_configs: fc.array(rule, { maxLength: 5 }),
})

// Prometheus scrapes at any address and finds out; svc refuses those that are none. What is left is what both can do.
const scraped = /^https?:\/\/(?:\[::1\]|[\w.-]+)(?::(?:\d{1,4}|65535))?(?:[/?]|$)/
const sorted = (labels: Iterable<readonly [string, string]>) =>
  [...labels].sort(([a], [b]) => (a < b ? -1 : 1))
/** Each once: Prometheus has two targets where labels differ that nobody sees. */
const once = (values: readonly unknown[]) => [...new Set(values.map(each => JSON.stringify(each)))].sort()

function ours(jobs: ReadonlyMap<string, WrittenJob>) {
  const active: unknown[] = []
  const seen: unknown[] = []
  const dropped: unknown[] = []
  const doubled = new Set<string>()
  for (const [jobName, written] of jobs) {
    const told = targetsOf(compiled(jobName, written), groupsOf(written))
    const all = written.static_configs.reduce((sum, { targets }) => sum + targets.length, 0)
    if (all > told.targets.length + told.droppedTotal) doubled.add(jobName)
    for (const { labels, url, discovered } of told.targets) {
      if (!scraped.test(url)) continue
      active.push([jobName, url, sorted(labels)])
      // Of several that are one target either may be told.
      if (!doubled.has(jobName)) seen.push(sorted(discovered))
    }
    for (const { reason, discovered } of told.dropped)
      if (reason === 'relabelling') dropped.push(sorted(discovered))
  }
  return { active: once(active), dropped: once(dropped), seen: once(seen), doubled }
}

function theirs({ activeTargets, droppedTargets }: PrometheusTargets, doubled: ReadonlySet<string>) {
  const active = activeTargets.filter(each => scraped.test(each.scrapeUrl))
  const discovered = (each: { readonly discoveredLabels: Labels }) =>
    sorted(Object.entries(each.discoveredLabels))
  return {
    active: once(active.map(each => [each.scrapePool, each.scrapeUrl, sorted(Object.entries(each.labels))])),
    dropped: once(droppedTargets.map(discovered)),
    seen: once(active.filter(each => !doubled.has(each.scrapePool)).map(discovered)),
  }
}

function compiled(jobName: string, written: WrittenJob): ScrapeJob {
  const relabel = written.relabel_configs.map(each => {
    const made = compileRelabel(each)
    assert.ok(!Array.isArray(made), `${JSON.stringify(each)}: ${JSON.stringify(made)}`)
    return made as RelabelRule
  })
  const { scheme, metrics_path: metricsPath, params } = written
  return scrapeJob({
    name: jobName,
    scheme,
    metricsPath,
    params,
    relabel,
    intervalMs: 3_600_000,
    timeoutMs: 10_000,
  })
}

function groupsOf(written: WrittenJob) {
  return written.static_configs.map(({ targets, labels }, i) => ({
    source: String(i),
    targets: targets.map(each => new Map([['__address__', each]])),
    labels: new Map(Object.entries(labels)),
  }))
}

test('targets come out of generated configurations as in Prometheus', {
  skip: withoutProgram(program, 'prometheus'),
}, async () => {
  const [starts, each] = soak ? [10, 400] : [1, 200]
  for (let start = 0; start < starts; start++) {
    const seed = soak ? Date.now() % 2 ** 31 : 9
    const written = fc.sample(job, { numRuns: each, seed })
    const jobs = new Map(written.map((one, i) => [`j${i}`, one]))
    const server = await startPrometheus(
      {
        global: { scrape_interval: '1h', scrape_timeout: '10s' },
        scrape_configs: [...jobs].map(([job_name, one]) => ({ job_name, ...one })),
      },
      // As version 3 does always.
      ['--enable-feature=no-default-scrape-port'],
      program,
    )
    try {
      const { doubled, ...want } = ours(jobs)
      const deadline = performance.now() + 60_000
      let found = theirs(await server.targets(), doubled)
      while (JSON.stringify(found) !== JSON.stringify(want) && performance.now() < deadline) {
        await pause(500)
        found = theirs(await server.targets(), doubled)
      }
      assert.ok(want.active.length > each / 4 && want.dropped.length > each / 8)
      for (const part of ['active', 'dropped', 'seen'] as const) {
        const text = `seed ${seed}, ${part}: `
        const extra = want[part].filter(one => !found[part].includes(one))
        const missing = found[part].filter(one => !want[part].includes(one))
        assert.deepEqual([text, extra, missing], [text, [], []])
      }
    } finally {
      await server.close()
    }
  }
})
