import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { list } from '../../../foundation/schema/collections.ts'
import { boolean, duration, integer, regex, someText } from '../../../foundation/schema/kinds.ts'
import { type Keys, key } from '../../../foundation/schema/tree.ts'
import { type Collector, collector } from '../../../signals/metrics/collectors/collector.ts'
import { ExporterFlags, type ExporterSettings } from './flags.ts'
import { manualText, usageText } from './help.ts'

const start = () => ({ collect: () => undefined })

const arp = collector({
  name: 'arp',
  summary: 'Neighbours',
  enabledByDefault: true,
  metrics: [],
  options: {
    device_include: key(regex, '', 'Devices to show.'),
    netlink: key(boolean, true, 'Asks over netlink.'),
  },
  start,
})
const diskstats = collector({
  name: 'diskstats',
  summary: 'Disks',
  enabledByDefault: true,
  metrics: [],
  options: { device_exclude: key(list(regex), ['^a,b$'], 'Devices to leave out.') },
  start,
})
const net_route = collector({
  name: 'net_route',
  summary: 'Routes',
  enabledByDefault: false,
  metrics: [],
  options: {
    words: key(list(someText), [], 'Words.'),
    patience: key(duration(), 5000, 'Patience.'),
    port: key(integer({ min: 1, max: 9 }), 3, 'Port.'),
    odd_key: key(someText, 'x', 'Odd.'),
  },
  flags: { odd_key: 'net-route_odd.Key' },
  start,
})
/** As the collector of text files: the command has what the exporter has. */
const texts = collector({
  name: 'texts',
  summary: 'Texts',
  enabledByDefault: false,
  metrics: [],
  options: {
    directory: key(list(someText), ['/a'], 'Directories.'),
    strict: key(boolean, false, 'Strict.'),
  },
  flags: { strict: '' },
  asOriginal: { directory: [], strict: true },
  start,
})

const flags = new ExporterFlags([arp, diskstats, net_route, texts] as unknown as readonly Collector<Keys>[])

function settings(...argv: string[]): ExporterSettings {
  return flags.parse(argv).settings()
}

function chosen(...argv: string[]): string {
  return settings(...argv)
    .chosen.map(({ unit }) => unit.name)
    .join()
}

function optionsOf(name: string, ...argv: string[]) {
  return settings(`--collector.${name}`, ...argv).chosen.find(({ unit }) => unit.name === name)!.options
}

function refuses(argv: readonly string[], why: string): void {
  assert.throws(() => settings(...argv), { name: 'UsageError', message: why })
}

test('without flags everything is as the exporter has it', () => {
  const { chosen, ...others } = settings()
  assert.deepEqual(others, {
    path: { procfs: '/proc', sysfs: '/sys', rootfs: '/', udev: '/run/udev/data' },
    listen: [':9100'],
    systemdSocket: false,
    webConfigFile: '',
    metricsPath: '/metrics',
    maxRequests: 40,
    exporterMetrics: true,
    logLevel: 'info',
    logFormat: 'logfmt',
  })
  assert.deepEqual(
    chosen.map(({ unit, options }) => [unit.name, options]),
    [
      ['arp', { device_include: '', netlink: true }],
      ['diskstats', { device_exclude: ['^a,b$'] }],
    ],
  )
})

test('collectors are turned on and off by name, and all that are on by default at once', () => {
  const check = (words: string, want: string) => assert.equal(chosen(...words.split(' ')), want)
  check('--no-collector.arp', 'diskstats')
  check('--collector.net_route --no-collector.diskstats', 'arp,net_route')
  check('--collector.disable-defaults', '')
  check('--collector.disable-defaults --collector.arp', 'arp')
  check('--no-collector.disable-defaults', 'arp,diskstats')
})

test('values are given behind an equals sign or as the next word, and lists by repetition', () => {
  assert.deepEqual(
    optionsOf('net_route', '--collector.net_route.words=a,b', '--collector.net_route.words', 'c'),
    {
      words: ['a,b', 'c'],
      patience: 5000,
      port: 3,
      odd_key: 'x',
    },
  )
  const odd = ['--collector.net_route.patience=1m2.5s', '--collector.net_route.port', '9']
  assert.deepEqual(optionsOf('net_route', ...odd, '--collector.net-route_odd.Key=--x=y'), {
    words: [],
    patience: 62_500,
    port: 9,
    odd_key: '--x=y',
  })
  const { device_include, netlink } = settings(
    '--collector.arp.device-include=^(a|b){1,2}=$',
    '--no-collector.arp.netlink',
  ).chosen[0]!.options
  assert.deepEqual([device_include, netlink], ['^(a|b){1,2}=$', false])
  assert.deepEqual(settings('--web.listen-address=:1', '--web.listen-address', '[::1]:2').listen, [
    ':1',
    '[::1]:2',
  ])
  assert.equal(settings('--path.udev.data=').path.udev, '')
  assert.equal(settings('--web.disable-exporter-metrics').exporterMetrics, false)
  assert.equal(settings('--runtime.gomaxprocs=8', '--web.max-requests=-1').maxRequests, -1)
})

test('what the exporter has otherwise is otherwise, with a flag or without', () => {
  assert.deepEqual(optionsOf('texts'), { directory: [], strict: true })
  assert.deepEqual(optionsOf('texts', '--collector.texts.directory=/b'), { directory: ['/b'], strict: true })
  refuses(['--collector.texts.strict'], "unknown long flag '--collector.texts.strict'")
  assert.match(usageText(flags.all.values()), /^ {6}--collector\.texts\.directory=[A-Z.]+ \.\.\.$/m)
})

test('old names of flags mean the new ones', () => {
  const [, disks] = settings('--collector.diskstats.ignored-devices=^x$').chosen
  assert.deepEqual(disks!.options, { device_exclude: ['^x$'] })
  refuses(
    ['--collector.diskstats.ignored-devices=a', '--collector.diskstats.device-exclude=b'],
    "flag 'collector.diskstats.device-exclude' cannot be repeated",
  )
})

test('words come from files too', t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-flags-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'flags')
  writeFileSync(file, '# mine\n--no-collector.arp\n\n--web.max-requests\n7\n')
  const { maxRequests, chosen } = settings(`@${file}`, '--web.telemetry-path=/m')
  assert.deepEqual([maxRequests, chosen.length], [7, 1])
  refuses([`@${file}x`], `failed to open arguments file "${file}x": there is no such file`)
})

test('what is wrong is told in the words of the exporter', () => {
  refuses(['--nope'], "unknown long flag '--nope'")
  refuses(['--no-nope=1'], "unknown long flag '--no-nope'")
  refuses(['-x'], "unknown short flag '-x'")
  refuses(['-'], "unknown short flag '-'")
  refuses(['word'], 'unexpected word')
  refuses(['--collector.arp=1'], 'unexpected 1')
  refuses(['--', '--version'], 'unexpected --version')
  refuses(['--web.max-requests'], "expected argument for flag '--web.max-requests'")
  refuses(['--web.max-requests', '--version'], "expected argument for flag '--web.max-requests'")
  refuses(['--no-web.max-requests=1'], "unknown long flag '--no-web.max-requests'")
  refuses(['--collector.arp', '--no-collector.arp'], "flag 'collector.arp' cannot be repeated")
  refuses(['--web.max-requests=x'], '--web.max-requests: expected a whole number, found "x"')
  refuses(['--log.level=loud'], 'unrecognized log level loud')
  refuses(['--log.format=xml'], 'unrecognized log format xml')
  refuses(['--web.telemetry-path=m'], '--web.telemetry-path: the path must begin with /, found "m"')
  assert.throws(() => settings('--collector.arp.device-include=('), {
    name: 'UsageError',
    message: /^--collector\.arp\.device-include: expected a regular expression, found the text "\("/,
  })
  refuses(
    ['--collector.net_route', '--collector.net_route.port=10'],
    '--collector.net_route.port: expected a whole number from 1 to 9, found the text "10"',
  )
})

test('help, version and the manual are asked for by switches', () => {
  const asked = (word: string) => {
    const given = flags.parse([word])
    return ['help', 'help-man', 'version'].filter(name => given.has(name)).join()
  }
  assert.deepEqual(['-h', '--help', '--help-long', '--help-man', '--version', '--no-version'].map(asked), [
    'help',
    'help',
    'help',
    'help-man',
    'version',
    '',
  ])
  const usage = usageText(flags.all.values())
  assert.match(usage, /^ {6}--collector\.arp {12}Neighbours \(on by default: yes\)\.$/m)
  assert.match(usage, /^ {6}--collector\.diskstats\.device-exclude="\^a,b\$" \.\.\.$/m)
  assert.match(usage, /^ {6}--collector\.net_route\.patience=5s$/m)
  assert.match(usage, /^ {2}-h, --help /m)
  assert.doesNotMatch(usage, /ignored-devices|help-long/)
  assert.ok(usage.split('\n').every(line => line.length <= 80 || line.startsWith('      --')))
  assert.match(manualText(flags.all.values()), /^\.TP\n\\fB\\-\\-collector\.arp\.netlink\\fR$/m)
})
