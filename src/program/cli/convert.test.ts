import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { svc } from '../../../test/helpers/svc.ts'
import { loadConfig } from '../../config/index.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { convert } from './convert.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-convert-test-'))
after(() => rmSync(directory, { recursive: true }))

function file(name: string, content: string | Buffer): string {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

function loaded(text: string) {
  const { config, problems } = loadConfig({ path: file('made.yaml', text), explicit: true, env: {} })
  assert.deepEqual(problems, [], text)
  return config
}

test('what is printed is a configuration, and the exit code tells whether it is all', async () => {
  const whole = await svc(['convert', 'node-exporter', '--collector.systemd', '--web.listen-address=:9200'])
  assert.deepEqual([whole.code, whole.talk], [0, ''])
  const { nodeexporter } = loaded(whole.out).agent
  assert.deepEqual([nodeexporter.listen_address, nodeexporter.collectors.systemd], [':9200', true])

  const jobs = file(
    'prometheus.yml',
    'rule_files: [a.yml]\nscrape_configs:\n- job_name: a\n  static_configs: [{targets: [b:1]}]\n',
  )
  const part = await svc(['convert', 'prometheus', jobs])
  assert.equal(part.code, 1)
  assert.match(part.talk, /^left out: rule_files: svc stores no data and evaluates no rules; keep them/m)
  assert.equal(loaded(part.out).collectors.prometheus.scrape_configs[0]!.job_name, 'a')

  const env = { OTEL_EBPF_OPEN_PORT: '8080', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4317' }
  const environment = await svc(['convert', 'obi'], { env })
  assert.equal(environment.code, 0, environment.talk)
  const { otlp, discovery } = loaded(environment.out)
  assert.deepEqual([otlp.endpoint, otlp.protocol], ['http://collector:4317', 'grpc'])
  assert.deepEqual(discovery.instrument[0]!.open_ports, [{ from: 8080, to: 8080 }])
})

test('input that cannot be read ends with 2, and nothing is printed', async () => {
  const bomb = ['a: &a [x, x, x, x, x, x, x, x, x, x]']
  for (let i = 0; i < 8; i++) {
    const name = String.fromCharCode(98 + i)
    const before = String.fromCharCode(97 + i)
    bomb.push(`${name}: &${name} [${Array(10).fill(`*${before}`).join(', ')}]`)
  }
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['prometheus', join(directory, 'none.yml')], /cannot read .*none\.yml: there is no such file/],
    [['prometheus', file('binary', Buffer.from([0, 1, 2, 255]))], /cannot read .*binary: not a text file/],
    [['prometheus', file('huge', Buffer.alloc(2_000_000, 'a'))], /the file is larger than 1 MiB/],
    [['prometheus', file('bomb.yml', bomb.join('\n'))], /aliases expand to more than 100000 values/],
    [['obi', file('words', 'just words\n')], /not an OBI configuration/],
    [['node-exporter', file('unit', '[Unit]\nDescription=x\n')], /it contains no ExecStart= of a unit/],
    [['prometheus'], /no file given/],
    [['promethus'], /cannot convert from "promethus"; did you mean prometheus\?/],
    [['obi', 'a', 'b'], /unexpected word "b"/],
  ]
  for (const [words, why] of cases)
    await assert.rejects(
      convert.run({ words, value: () => undefined, has: () => false }),
      (error: unknown) =>
        error instanceof StartError && error.exitCode === ExitCode.usage && why.test(error.message),
      words.join(' '),
    )
  const { code, out, talk } = await svc(['convert', 'promethus'])
  assert.deepEqual([code, out], [2, ''], talk)
})

test('help tells the three forms', async () => {
  const { code, out } = await svc(['convert', 'obi', '--help'])
  assert.equal(code, 0)
  assert.match(out, /svc convert node-exporter \[FILE\] \[FLAGS\.\.\.\]\n.*prometheus FILE\n.*obi \[FILE\]/)
})
