// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in the file.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { debianProgram, withoutProgram } from '../../../../test/helpers/debian-program.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { collectorOptions, loadConfig } from '../../../config/index.ts'
import { collectors as units } from '../../../signals/metrics/collectors/index.ts'
import { ExporterFlags } from '../node-exporter/flags.ts'
import { Conversion } from './conversion.ts'
import { flagsIn, fromNodeExporter } from './from-node-exporter.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-convert-test-'))
after(() => rmSync(directory, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

function converted(words: readonly string[]) {
  const conversion = new Conversion('test')
  fromNodeExporter(words, conversion)
  const made = conversion.finish()
  const { config, problems } = loadConfig({ path: file('made.yaml', made.text), explicit: true, env: {} })
  assert.deepEqual(problems, [], made.text)
  return { ...made, config }
}

/** The agent has on what the exporter has on, with the same options. */
function checkSame(words: readonly string[]): void {
  const { config, text, leftOut } = converted(words)
  const settings = new ExporterFlags().parse(words).settings()
  const { collectors, path, max_requests } = config.agent.nodeexporter
  const on = units.filter(({ name }) => collectors[name]).map(({ name }) => name)
  assert.deepEqual(
    on,
    settings.chosen.map(({ unit }) => unit.name),
    text,
  )
  for (const { unit, options } of settings.chosen) {
    const said = words.some(word => word.startsWith(`--collector.${unit.name}.`))
    const original = said ? {} : (unit.asOriginal ?? {})
    const own = collectorOptions(config, unit.name)
    for (const [name, value] of Object.entries(options))
      if (!(name in original)) assert.deepEqual(own[name], value, `${unit.name}.${name}\n${text}`)
  }
  assert.deepEqual([path, max_requests], [settings.path, settings.maxRequests])
  assert.deepEqual(leftOut, [])
}

test('the agent collects what the exporter did with these flags, by the same options', () => {
  checkSame([])
  checkSame(['--collector.disable-defaults', '--collector.cpu', '--no-collector.meminfo'])
  checkSame([
    '--collector.systemd',
    '--collector.systemd.unit-include=^(ssh|${x}|$${y})\\.service$',
    '--collector.textfile.directory',
    '/var/lib/a # b',
    '--collector.textfile.directory=/c: "d"',
    '--collector.filesystem.mount-points-exclude=^/(dev|proc)($|/)',
    '--collector.netdev.device-exclude=^veth',
    '--path.procfs=/host/proc',
    '--path.rootfs=/host',
    '--web.max-requests=0',
  ])
})

test('any switches of collectors go over', () => {
  const flag = fc.constantFrom(
    ...units.flatMap(({ name }) => [`--collector.${name}`, `--no-collector.${name}`]),
  )
  const flags = fc.uniqueArray(flag, { selector: each => each.replace('no-', ''), maxLength: 12 })
  fc.assert(fc.property(flags, checkSame), { numRuns: soak ? 200 : 8 })
})

test('what svc has no key for is named, and the rest goes over', () => {
  const { leftOut, config, notes } = converted([
    '--colector.systemd',
    '--collector.systemd',
    '--web.telemetry-path=/m',
    '--web.listen-address=127.0.0.1:1',
    '--web.listen-address=[::1]:2',
    '--web.max-requests=-1',
    '--collector.netdev.device-include=(',
    'word',
    '--runtime.gomaxprocs=4',
  ])
  const told = leftOut.join('\n')
  assert.match(told, /^--colector\.systemd: unknown flag; did you mean --collector\.systemd\?$/m)
  assert.match(told, /^--web\.telemetry-path=\/m: the path of svc is \/metrics; set that as metrics_path/m)
  assert.match(told, /^--web\.listen-address=\[::1\]:2: svc listens on one address/m)
  assert.match(told, /^--web\.max-requests: svc does not accept it as agent\.nodeexporter\.max_requests/m)
  assert.match(told, /^--collector\.netdev\.device-include: expected a regular expression/m)
  assert.match(told, /^"word": not a flag; delete it$/m)
  assert.equal(leftOut.length, 6)
  assert.match(notes.join('\n'), /--runtime\.gomaxprocs needs no conversion/)
  const { listen_address, collectors } = config.agent.nodeexporter
  assert.deepEqual([listen_address, collectors.systemd], ['127.0.0.1:1', true])
})

test('TLS of a web configuration goes over, and users do not', () => {
  const web = file(
    'web.yml',
    'tls_server_config: {cert_file: a.crt, key_file: /k/a.key, min_version: TLS13}\nbasic_auth_users: {me: hash}\n',
  )
  const { leftOut, config } = converted([`--web.config.file=${web}`])
  const { enabled, cert_file, key_file } = config.agent.nodeexporter.tls
  assert.deepEqual([enabled, cert_file, key_file], [true, join(directory, 'a.crt'), '/k/a.key'])
  assert.equal(leftOut.length, 2)
  assert.doesNotMatch(leftOut.join(), /hash/)
})

function flagsOf(text: string): string[] {
  return flagsIn({ name: 'input', path: undefined, text }, new Conversion('test'))
}

test('flags are found in units, in files of variables, and by themselves', () => {
  const defaults = file('defaults', '# all\nARGS="--collector.a=\\"x y\\" \\\n  --b=\\\\\\\\d"\n')
  const want = ['--collector.a=x y', '--b=\\d']
  assert.deepEqual(flagsOf(readFileSync(defaults, 'utf8')), want)
  const unit = `[Service]\nEnvironment="MORE=1 2" P=:9\nEnvironmentFile=-${defaults}\nExecStart=/usr/bin/x $ARGS \\\n --p=\${P} --m=\${MORE} $NONE\n`
  assert.deepEqual(flagsOf(unit), [...want, '--p=:9', '--m=1 2'])
  assert.deepEqual(flagsOf("OPTIONS='--a --b'\n"), ['--a', '--b'])
  assert.deepEqual(flagsOf('--a\n--b=c\n'), ['--a', '--b=c'])
})

const packaged = debianProgram({
  package: 'prometheus-node-exporter',
  path: 'etc/default/prometheus-node-exporter',
})

test('what Debian installs asks for nothing', {
  skip: withoutProgram(packaged, 'prometheus-node-exporter'),
}, () => {
  assert.ok(existsSync(packaged!))
  const words = flagsOf(readFileSync(packaged!, 'utf8'))
  assert.deepEqual(words, [])
  checkSame(words)
})
