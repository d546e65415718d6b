import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Examined } from './check.ts'
import type { Diagnosis } from './examine.ts'
import { report } from './report.ts'

const host = {
  name: 'a',
  os: 'linux',
  kernel: '6.3.0',
  arch: 'x64',
  cpus: 1,
  user: 'svc',
  install: 'host',
  version: '1.2.3',
} as const

function diagnosis(checks: readonly Examined[], install: Diagnosis['host']['install'] = 'host'): Diagnosis {
  return {
    host: { ...host, install },
    sources,
    degraded: [],
    ok: true,
    groups: [{ topic: 'traces', title: 'Traces', checks }],
  }
}

const sources: Diagnosis['sources'] = {
  address: '',
  version: '',
  mode: '',
  uptime: '',
  answered: [],
  why: 'nobody listens',
  configuration: 'svc.yaml',
}

const hints = { any: 'run as root', systemd: 'A=b', container: 'docker run -x', kubernetes: 'a: b' }
const missing: Examined = {
  name: 'eBPF programs',
  state: 'missing',
  detail: 'not permitted',
  fault: 'x',
  impact: 'traces',
  hints,
}

test('a group has its title, a line for each check, and what is lost with its hints', () => {
  const text = report(diagnosis([{ name: 'BTF', state: 'ok', detail: 'there' }, missing]), false)
  assert.equal(
    text,
    `Host checks: svc 1.2.3 on linux 6.3.0 x64, 1 CPU, as svc
No agent answered (nobody listens); all checks ran here, with svc.yaml.

TRACES
  ok       BTF           there
  missing  eBPF programs not permitted
                         Loss: traces
                         Fix, one of:
                           anywhere   run as root
                           systemd    A=b
                           container  docker run -x
                           kubernetes a: b

1 missing. All other checks passed.
`,
  )
})

test('the fix that fits the installation stands first, and a single one on its line', () => {
  const first = (install: Diagnosis['host']['install']) =>
    /Fix, one of:\n +(\w+)/.exec(report(diagnosis([missing], install), false))![1]
  assert.equal(first('systemd'), 'systemd')
  assert.equal(first('kubernetes'), 'kubernetes')
  assert.equal(first('host'), 'anywhere')
  const single = { ...missing, hints: { sysctl: 'sysctl -w a=1' } }
  assert.match(report(diagnosis([single]), false), /^ +Fix: sysctl -w a=1$/m)
})

test('what is unknown or a note is no problem, and nothing wrong is one sentence', () => {
  const check = (states: Examined['state'][], want: string) =>
    assert.equal(
      report(diagnosis(states.map((state, i) => ({ name: `n${i}`, state, detail: 'd' }))), false)
        .trimEnd()
        .split('\n')
        .at(-1),
      want,
    )
  check(['ok', 'note'], 'All checks passed.')
  check(
    ['unknown', 'missing', 'missing', 'limited'],
    '1 limited, 2 missing, 1 unknown. All other checks passed.',
  )
})

test('foreign text is one bounded run of printable ASCII, and long text is wrapped', () => {
  const detail = `the receiver’s words: \x1b[31mred\x07\n${'word '.repeat(1000)}`
  const text = report(diagnosis([{ ...missing, detail }]), false)
  assert.doesNotMatch(text, /[^\n\x20-\x7e]/)
  assert.match(text, /the receiver's words: \?\[31mred\? word/)
  for (const line of text.split('\n')) assert.ok(line.length <= 100, line)
  assert.ok(text.length < 2500, String(text.length))
  const narrow = report(diagnosis([{ ...missing, detail, impact: detail }]), false, 80)
  for (const line of narrow.split('\n')) assert.ok(line.length <= 80, line)
})

test('colours are there when they are wanted, around the same text', () => {
  const plain = report(diagnosis([missing]), false)
  const coloured = report(diagnosis([missing]), true)
  assert.match(coloured, /\x1b\[31mmissing \x1b\[0m/)
  assert.equal(coloured.replaceAll(/\x1b\[\d+m/g, ''), plain)
})

test('who tried it stands beside each where an agent was asked, and what that lacks stands first', () => {
  const told: Diagnosis = {
    ...diagnosis([
      { name: 'BTF', state: 'ok', detail: 'there', by: 'agent' },
      { name: 'capture', state: 'ok', detail: 'loaded', by: 'here' },
    ]),
    sources: {
      address: 'unix:/run/svc.sock',
      version: '1.2.3',
      mode: 'agent',
      uptime: '3m2s',
      answered: ['status', 'configuration', 'tries'],
      why: '',
      configuration: 'running',
    },
    degraded: [{ subsystem: 'logs', reason: 'no \x1b[2Jright', hint: 'run as root' }],
  }
  assert.equal(
    report(told, false, 200),
    `Host checks: svc 1.2.3 on linux 6.3.0 x64, 1 CPU, as svc
Checks marked "agent" were run by svc 1.2.3, mode agent, up 3m2s, at unix:/run/svc.sock; those marked "here" by this command, with the agent's configuration.

RUNNING AGENT
  limited  agent logs    no ?[2Jright
                         Fix: run as root

TRACES
  ok       agent BTF     there
  ok       here  capture loaded

1 limited. All other checks passed.
`,
  )
})
