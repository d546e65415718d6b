import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArguments } from './arguments.ts'
import { commands } from './index.ts'

function parsed(words: string) {
  const line = parseArguments(words === '' ? [] : words.split(' '), commands)
  if (typeof line === 'string') return line
  const flags = ['config', 'mode', 'log-level', 'json', 'validate-config', 'version', 'help']
  const given = flags.filter(name => line.args.has(name)).map(name => `${name}=${line.args.value(name)}`)
  return [line.command.name, ...given, ...line.args.words].join(' ')
}

test('run is meant where no command is named', () => {
  const check = (words: string, want: string) => assert.equal(parsed(words), want)
  check('', 'run')
  check('--config a.yaml', 'run config=a.yaml')
  check('--config run', 'run config=run')
  check('run --config=a.yaml --log-level debug', 'run config=a.yaml log-level=debug')
  check('--config a.yaml validate', 'validate config=a.yaml')
  check('validate a.yaml', 'validate a.yaml')
  check('--validate-config a.yaml', 'run validate-config=a.yaml')
  check('version --json', 'version json=')
  check('diagnostics --config a.yaml', 'diagnostics config=a.yaml')
  check('-h', 'run help=')
  check('--version', 'run version=')
  check('help', 'run help=')
  check('help doctor', 'doctor help=')
  check('node-exporter --no-collector.arp --version x', 'node-exporter --no-collector.arp --version x')
  check('help node-exporter', 'node-exporter --help')
})

test('what is wrong is named, with what was probably meant', () => {
  const check = (words: string, want: string) => assert.equal(parsed(words), want)
  check('doctr', 'unknown command "doctr"; did you mean doctor?')
  check('frobnicate', 'unknown command "frobnicate"')
  check('--confg a', 'unknown flag --confg of "svc run"; did you mean --config?')
  check('run --confg a', 'unknown flag --confg of "svc run"; did you mean --config?')
  check('--x', 'unknown flag --x of "svc run"')
  check('run --json', 'unknown flag --json of "svc run"')
  check('-config a', 'unknown flag -config of "svc run"; did you mean --config?')
  check('run -config=a', 'unknown flag -config of "svc run"; did you mean --config?')
  check('--config', '--config needs a value: --config FILE')
  check('--config=', '--config needs a value: --config FILE')
  check('--config --mode agent', '--config needs a value: --config FILE')
  check('--mode a --mode b', '--mode is given twice')
  check('version --json=1', '--json does not take a value')
  check('run extra', 'unexpected word "extra"')
  check('validate a b', 'unexpected word "b"')
})
