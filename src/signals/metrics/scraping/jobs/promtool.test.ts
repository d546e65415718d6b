// Prometheus itself says what is a configuration of its own.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { promtoolProgram, withoutPrometheus } from '../../../../../test/helpers/prometheus-server.ts'
import { readScraping } from '../../../../../test/helpers/scrape-configs.ts'
import { soak } from '../../../../../test/helpers/soak.ts'

/** Why each text is refused, '' where it is taken. */
function judged(texts: readonly string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'svc-promtool-'))
  try {
    const files = texts.map((text, i) => {
      const file = join(folder, `${i}.yml`)
      writeFileSync(file, text)
      return file
    })
    const { stdout, stderr } = spawnSync(promtoolProgram, ['check', 'config', '--syntax-only', ...files], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    })
    const passed = new Set([...stdout.matchAll(/SUCCESS: (\S+) is valid/g)].map(match => match[1]))
    const faults = stderr.split(/^ {2}FAILED: /m).slice(1)
    return files.map(file => {
      const fault = passed.has(file) ? '' : (faults.shift() ?? 'no answer').trim()
      // What relabelling makes of a target is no matter of the configuration here.
      return /^instance \d+ in group/.test(fault) ? '' : fault
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function check(texts: readonly string[]): { taken: number } {
  let taken = 0
  for (const [i, fault] of judged(texts).entries()) {
    // As long as Prometheus has it for jobs that say nothing.
    const { problems } = readScraping(texts[i]!.replace(/^\{/, '{"scrape_interval": "1m", '))
    const told = `${texts[i]}\npromtool: ${fault || 'valid'}\nsvc: ${problems.join('\n') || 'valid'}`
    assert.equal(problems.length === 0, fault === '', told)
    if (fault === '') taken++
  }
  return { taken }
}

test('promtool takes what is kept here as examples', { skip: withoutPrometheus }, () => {
  const folder = join(import.meta.dirname, '../../../../../test/fixtures/scrape-configs')
  // Debian's Prometheus has no Kubernetes and is older than some keys.
  const texts = readdirSync(folder)
    .map(name => readFileSync(join(folder, name), 'utf8'))
    .filter(text => !/kubernetes_sd|fallback_scrape_protocol/.test(text))
  assert.ok(texts.length >= 22)
  assert.equal(check(texts).taken, texts.length)
})

/** Most values are good, or no job would be taken. */
const rarely = <T>(good: readonly T[], bad: readonly unknown[]) =>
  fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(...good) },
    { weight: 1, arbitrary: fc.constantFrom(...bad) },
  )

const texts = rarely<unknown>(['a', 'b c', 5, true, null, ''], [['a'], { a: 'b' }])
const counts = rarely([0, 1, 5000, null], [-1, '5', [], true])
const booleans = rarely([true, false, null], ['true', 1, 'x', []])
const durations = rarely(['30s', '1m', '10s', '1m0s', '2m', null], ['30', 30, '', '1.5m', '1m1h', '-5s', []])
const names = rarely(['a', 'instance', '__tmp', 'job', '__name__'], ['', ['a'], {}])
const lists = <T>(each: fc.Arbitrary<T>) =>
  fc.oneof(
    { weight: 60, arbitrary: fc.array(each, { maxLength: 3 }) },
    { weight: 1, arbitrary: fc.constantFrom('a', 5, {}) },
  )
const maps = (each: fc.Arbitrary<unknown>) =>
  fc.oneof(
    { weight: 60, arbitrary: fc.dictionary(fc.constantFrom('a', 'job', '__x'), each, { maxKeys: 3 }) },
    { weight: 1, arbitrary: fc.constantFrom('a', 5, []) },
  )

/** A map with some of the keys; seldom with one that is unknown, or something else. */
function some(keys: Record<string, fc.Arbitrary<unknown>>, always: string[] = []): fc.Arbitrary<unknown> {
  const others = Object.keys(keys).filter(name => !always.includes(name))
  const good = fc
    .subarray(others, { maxLength: Math.min(4, others.length) })
    .chain(chosen => fc.record(Object.fromEntries([...always, ...chosen].map(name => [name, keys[name]!]))))
  return fc.oneof(
    { weight: 80, arbitrary: good },
    { weight: 1, arbitrary: good.map(each => ({ ...each, unknown_key: 1 })) },
    { weight: 1, arbitrary: fc.constantFrom('a', ['a'], 5) },
  )
}

const access = {
  basic_auth: some({ username: texts, password: texts, password_file: texts }),
  authorization: some({
    type: rarely(['Bearer', 'Token', ''], ['basic', ' Basic ']),
    credentials: texts,
    credentials_file: texts,
  }),
  bearer_token: fc.constantFrom('a', '', null),
  bearer_token_file: fc.constantFrom('a', ''),
  tls_config: some({
    ca_file: texts,
    server_name: texts,
    insecure_skip_verify: booleans,
    min_version: rarely(['TLS10', 'TLS12'], ['TLS9', 'x', 12]),
  }),
  proxy_url: fc.constantFrom('http://proxy:1', 'https://u:p@proxy'),
  follow_redirects: booleans,
  enable_http2: booleans,
}

const rule = fc.oneof(
  some(
    {
      target_label: names,
      source_labels: lists(names),
      regex: rarely(['(.*)', 'a|b', '', null, 5, true], ['(', '[', '(?=a)', 'a**']),
    },
    ['target_label'],
  ),
  some(
    {
      action: rarely(['keep', 'drop', 'Keep'], ['', 'kep', null]),
      source_labels: lists(names),
      separator: texts,
      regex: rarely(['(.*)', '.+', 1.5, '(?P<x>a)', '(?i)a'], ['(', 'a{2,1}']),
    },
    ['action', 'source_labels'],
  ),
  some(
    {
      action: rarely(['labeldrop', 'labelkeep'], ['labelkill']),
      regex: rarely(['a', 'b.*'], ['(']),
    },
    ['action', 'regex'],
  ),
  some(
    {
      action: fc.constantFrom('hashmod', 'lowercase', 'uppercase', 'keepequal', 'dropequal', 'labelmap'),
      source_labels: lists(names),
      target_label: names,
      modulus: counts,
    },
    ['action'],
  ),
)

const job = some(
  {
    job_name: rarely(['a', 'b c', 5, true], ['', null, []]),
    scrape_interval: durations,
    scrape_timeout: rarely(['5s', '10s', null], ['3m', '5', 5]),
    metrics_path: texts,
    scheme: fc.constantFrom('http', 'https', '', null),
    params: maps(fc.oneof(lists(texts), fc.constant(null))),
    honor_labels: booleans,
    honor_timestamps: booleans,
    sample_limit: counts,
    target_limit: counts,
    label_limit: counts,
    label_name_length_limit: counts,
    label_value_length_limit: counts,
    body_size_limit: rarely(['10MB', '1KiB', 0, '1.5MB', '1MB1KB', null], ['10M', '10mb', 100, '', '1 MB']),
    ...access,
    static_configs: lists(
      some({
        targets: lists(rarely<unknown>(['a:1', 'b', '[::1]:9', 5], ['a/b', 'http://a:1'])),
        labels: maps(texts),
      }),
    ),
    file_sd_configs: lists(
      some(
        {
          files: lists(rarely(['a.json', 'b/*.yml', '/c/d*.yaml'], ['a.txt', '*/a.yml', ''])),
          refresh_interval: durations,
        },
        ['files'],
      ),
    ),
    http_sd_configs: lists(
      some(
        {
          url: rarely(['http://a', 'https://a:1/b?c'], ['a', 'ftp://a', '', null]),
          refresh_interval: durations,
          // Debian's Prometheus does not check what the other keys of access contradict each other in here.
          proxy_url: access.proxy_url,
          follow_redirects: booleans,
        },
        ['url'],
      ),
    ),
    dns_sd_configs: lists(
      some(
        {
          names: lists(texts),
          type: rarely(['SRV', 'A', 'aaaa', 'MX'], ['TXT', '']),
          port: rarely([9100, 80], [0, 'a']),
          refresh_interval: durations,
        },
        ['names', 'port'],
      ),
    ),
    docker_sd_configs: lists(
      some(
        {
          host: rarely(['unix:///a.sock', 'tcp://a:1'], ['', null]),
          port: rarely([1, 80], ['a']),
          host_networking_host: texts,
          refresh_interval: durations,
        },
        ['host'],
      ),
    ),
    relabel_configs: lists(rule),
    metric_relabel_configs: lists(rule),
  },
  ['job_name'],
)

test('promtool takes and refuses what svc does', { skip: withoutPrometheus }, () => {
  const count = soak ? 20_000 : 400
  let taken = 0
  for (let done = 0; done < count; done += 400) {
    const few = fc.record({ scrape_configs: lists(job) })
    const made = fc.sample(few, { numRuns: 400, ...(soak ? {} : { seed: 9 }) })
    taken += check(made.map(each => JSON.stringify(each))).taken
  }
  assert.ok(taken > count / 10 && taken < count * 0.9, `${taken} of ${count} were taken`)
})
