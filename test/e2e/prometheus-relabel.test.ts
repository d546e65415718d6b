// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of replacements.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileRelabel, type RelabelRule } from '../../src/scraping/relabel.ts'
import type { ScrapeJob } from '../../src/scraping/scrape-job.ts'
import { targetsOf } from '../../src/scraping/targets.ts'
import { pause } from '../helpers/program.ts'
import { type PrometheusTargets, startPrometheus, withoutPrometheus } from '../helpers/prometheus-server.ts'
import { scrapeJob } from '../helpers/scrape-job.ts'

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
      modulus: fc.oneof(
        fc.integer({ min: 1, max: 8 }),
        fc.maxSafeInteger().map(n => Math.abs(n) + 1),
      ),
    },
    { requiredKeys: ['action', 'source_labels', 'target_label', 'modulus'] },
  ),
  fc.record({
    action: fc.constant('labelmap'),
    regex: fc.constantFrom('__meta_x_(.+)', '(.)(.*)', 'env|a', '__(.*)__'),
    replacement: fc.constantFrom('m_$1', 'm_$2', 'm'),
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

/** A label of the API is there once; so is a target, though Prometheus tells two where labels that none sees differ. */
const sorted = (labels: Iterable<readonly [string, string]>) =>
  [...labels].sort(([a], [b]) => (a < b ? -1 : 1))
const set = (texts: readonly unknown[]) => [...new Set(texts.map(text => JSON.stringify(text)))].sort()

function ours(jobs: ReadonlyMap<string, WrittenJob>) {
  const active: unknown[] = []
  const seen: unknown[] = []
  const dropped: unknown[] = []
  for (const [jobName, written] of jobs) {
    const told = targetsOf(compiled(jobName, written), groupsOf(written))
    for (const { labels, url, discovered } of told.targets) {
      active.push([jobName, url, sorted(labels)])
      seen.push(sorted(discovered))
    }
    for (const { reason, discovered } of told.dropped)
      if (reason === 'relabelling') dropped.push(sorted(discovered))
  }
  return { active: set(active), dropped: set(dropped), seen: set(seen) }
}

function theirs({ activeTargets, droppedTargets }: PrometheusTargets) {
  return {
    active: set(
      activeTargets.map(each => [each.scrapePool, each.scrapeUrl, sorted(Object.entries(each.labels))]),
    ),
    dropped: set(droppedTargets.map(each => sorted(Object.entries(each.discoveredLabels)))),
    seen: set(activeTargets.map(each => sorted(Object.entries(each.discoveredLabels)))),
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
  skip: withoutPrometheus,
}, async () => {
  const [starts, each] = process.env.SVC_SOAK ? [10, 400] : [1, 200]
  for (let start = 0; start < starts; start++) {
    const seed = process.env.SVC_SOAK ? Date.now() % 2 ** 31 : 9
    const written = fc.sample(job, { numRuns: each, seed })
    const jobs = new Map(written.map((one, i) => [`j${i}`, one]))
    const server = await startPrometheus(
      {
        global: { scrape_interval: '1h', scrape_timeout: '10s' },
        scrape_configs: [...jobs].map(([job_name, one]) => ({ job_name, ...one })),
      },
      // As version 3 does always.
      ['--enable-feature=no-default-scrape-port'],
    )
    try {
      const want = ours(jobs)
      const deadline = performance.now() + 60_000
      let found = theirs(await server.targets())
      while (JSON.stringify(found) !== JSON.stringify(want) && performance.now() < deadline) {
        await pause(500)
        found = theirs(await server.targets())
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
