// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in the file.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { debianProgram, withoutProgram } from '../../../../test/helpers/debian-program.ts'
import { readScraping } from '../../../../test/helpers/scrape-configs.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { loadConfig } from '../../../config/index.ts'
import { jobsOf } from '../../../signals/metrics/scraping/jobs/jobs.ts'
import { Conversion } from './conversion.ts'
import { fromPrometheus } from './from-prometheus.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-convert-test-'))
after(() => rmSync(directory, { recursive: true }))
const fixtures = join(import.meta.dirname, '../../../../test/fixtures/scrape-configs')

function converted(text: string, env: Record<string, string> = {}) {
  const conversion = new Conversion('test')
  fromPrometheus({ name: 'prometheus.yml', path: '/base/prometheus.yml', text }, conversion)
  const made = conversion.finish()
  const path = join(directory, 'made.yaml')
  writeFileSync(path, made.text)
  const { config, problems } = loadConfig({ path, explicit: true, env })
  assert.deepEqual(problems, [], made.text)
  const { prometheus } = config.collectors
  return { ...made, prometheus, jobs: jobsOf(prometheus, { baseDir: '/elsewhere' }).jobs }
}

for (const name of readdirSync(fixtures)) {
  test(`${name}: the jobs are the same, wherever the configuration lies`, () => {
    const text = readFileSync(join(fixtures, name), 'utf8')
    const { jobs, leftOut } = converted(text)
    assert.deepEqual(leftOut, [])
    // As long as Prometheus has it where nothing is said.
    assert.deepEqual(jobs, readScraping(`scrape_interval: 1m\n${text}`).jobs)
  })
}

const packaged = debianProgram({ package: 'prometheus', path: 'etc/prometheus/prometheus.yml' })

test('the file that Debian installs scrapes the same', {
  skip: withoutProgram(packaged, 'prometheus'),
}, () => {
  const { leftOut, jobs, prometheus } = converted(readFileSync(packaged!, 'utf8'))
  assert.deepEqual(
    leftOut.map(line => line.split(':')[0]),
    ['alerting'],
  )
  assert.deepEqual(
    jobs.map(({ name, intervalMs, timeoutMs }) => [name, intervalMs, timeoutMs]),
    [
      ['prometheus', 5000, 5000],
      ['node', 15_000, 10_000],
    ],
  )
  assert.deepEqual(prometheus.external_labels, { monitor: 'example' })
})

test('what holds for all jobs goes over, and variables of external labels stay variables', () => {
  const { jobs, prometheus, notes, leftOut, text } = converted(
    `global: {scrape_interval: 2m30s, body_size_limit: 10MB, sample_limit: 5, label_limit: 7, evaluation_interval: 1m,
      external_labels: {host: "\${HOST_OF}-$ZONE_OF", price: "$$5", odd: "\${", plain: "$\${HOST_OF}"}}
scrape_configs: [{job_name: a}, {job_name: b, label_limit: 9}]`,
    { HOST_OF: 'h', ZONE_OF: 'z' },
  )
  assert.deepEqual(leftOut, [])
  assert.deepEqual(prometheus.external_labels, {
    host: 'h-z',
    price: '$5',
    odd: '${',
    plain: '${HOST_OF}',
  })
  assert.match(text, /\$\{HOST_OF:-\}-\$\{ZONE_OF:-\}/)
  assert.match(notes.join('\n'), /uses variables that svc needs, too: HOST_OF, ZONE_OF/)
  assert.deepEqual(
    jobs.map(({ intervalMs, limits: { bodyBytes, samples, labels } }) => [
      intervalMs,
      bodyBytes,
      samples,
      labels,
    ]),
    [
      [150_000, 10 * 1024 * 1024, 5, 7],
      [150_000, 10 * 1024 * 1024, 5, 9],
    ],
  )
})

test('a job that svc cannot scrape is left out as a whole, with the reason; the others go over', () => {
  const { jobs, leftOut, notes } = converted(`
remote_write: [{url: "https://me:secret@x/api"}]
storage: {}
scrape_configz: []
scrape_configs:
- {job_name: good, scrape_interval: 5s, stream_parse: true}
- {job_name: cloud, consul_sd_configs: [{server: x}]}
- {job_name: token, authorization: {credentials: s3cret}, oauth2: {client_id: a}}
- {job_name: good}
- 5
- {job_name: last, bearer_token: "t\${o}k"}
`)
  assert.deepEqual(
    jobs.map(({ name }) => name),
    ['good', 'last'],
  )
  const told = leftOut.join('\n')
  assert.match(told, /^remote_write: svc sends OTLP, not remote write; set otlp\.endpoint/m)
  assert.match(told, /^scrape_configz: unknown; did you mean scrape_configs\?$/m)
  assert.match(told, /^prometheus\.yml:7: job "cloud": .*svc does not support this discovery/m)
  assert.match(told, /^prometheus\.yml:8: job "token": .*oauth2/m)
  assert.match(told, /^prometheus\.yml:9: job "good": .*duplicate job name "good"/m)
  assert.match(told, /^prometheus\.yml:10: job without a name: not a scrape configuration/m)
  assert.doesNotMatch(told, /s3cret|secret@/)
  assert.match(notes.join('\n'), /stream_parse needs no conversion: svc always reads pages as sent/)
  assert.match(notes.join('\n'), /passwords or tokens/)
  assert.match(JSON.stringify(jobs.at(-1)!.access), /t\$\{o\}k/)
})

test('no text of a value gets out of its place', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter(each => !each.includes('\0'))
  const nasty = fc.constantFrom(
    'a\nmode: collector',
    '# no',
    "'",
    '"',
    '- b',
    '${file:/etc/passwd}',
    '$${A}',
    '\u2028',
    '010',
    '~',
  )
  fc.assert(
    fc.property(fc.oneof(text, nasty), fc.oneof(text, nasty), (label, value) => {
      const input = {
        scrape_configs: [
          { job_name: `x${value}`, static_configs: [{ targets: ['a:1'], labels: { [`l${label}`]: value } }] },
        ],
      }
      const { prometheus, leftOut } = converted(JSON.stringify(input))
      assert.deepEqual(leftOut, [])
      assert.deepEqual(JSON.parse(JSON.stringify(prometheus.scrape_configs)), input.scrape_configs)
    }),
    { numRuns: soak ? 500 : 25 },
  )
})

test('relative paths begin where the file was', () => {
  const { prometheus } = converted(`
scrape_configs:
- job_name: a
  tls_config: {ca_file: ca.pem}
  file_sd_configs: [{files: [targets/*.yml, /abs/b.json]}]
  static_configs: [{targets: [a:1], labels: {ca_file: ca.pem, zone: 010}}]
`)
  const [job] = prometheus.scrape_configs
  assert.equal(job!.tls_config!.ca_file, '/base/ca.pem')
  assert.deepEqual(job!.file_sd_configs![0]!.files, ['/base/targets/*.yml', '/abs/b.json'])
  assert.deepEqual(job!.static_configs![0]!.labels, { ca_file: 'ca.pem', zone: '010' })
})
