import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anyProcess as any } from '../../../test/helpers/any-process.ts'
import { judge, type SelectionRules, type Verdict } from './selection.ts'

const attributes: Record<string, string> = {
  'k8s.namespace.name': 'eu',
  'k8s.pod.name': 'shop-7d9f-x',
  'k8s.deployment.name': 'shop',
  'k8s.container.name': 'web',
}
const labels: Record<string, string> = { tier: 'front', empty: '' }
const shop = {
  name: 'shop',
  executable: '/usr/bin/node',
  listening: () => [8080, 9229],
  attribute: (key: string) => attributes[key] ?? '',
  podLabel: (key: string) => labels[key],
}

const verdictOf = (rules: Partial<SelectionRules>) => judge({ instrument: [], exclude: [], ...rules }, shop)
const check = (rules: Partial<SelectionRules>, want: Verdict) => assert.deepEqual(verdictOf(rules), want)

test('without rules everything is observed', () => check({}, { observed: true, cause: 'no_rules' }))

test('everything that one entry gives must hold, and one entry suffices', () => {
  check(
    { instrument: [{ ...any, name: 'shop', ports: [{ from: 80, to: 80 }] }] },
    { observed: false, cause: 'no_entry' },
  )
  check(
    {
      instrument: [
        { ...any, name: 'till' },
        { ...any, ports: [{ from: 8000, to: 8999 }] },
      ],
    },
    { observed: true, cause: 'instrument', entry: 1 },
  )
})

test('what is excluded is not observed, whatever else means it', () => {
  check(
    { instrument: [{ ...any, name: 'shop' }], exclude: [{ ...any, executable: '*/node' }] },
    { observed: false, cause: 'exclude', entry: 0 },
  )
})

test('a star stands for any text, also for none', () => {
  for (const [name, want] of [
    ['shop', true],
    ['sh*', true],
    ['*op', true],
    ['s*o*p', true],
    ['*', true],
    ['shop*', true],
    ['sho', false],
    ['sho*op', false],
    ['*x*', false],
    ['shop*p', false],
  ] as const)
    assert.equal(verdictOf({ instrument: [{ ...any, name }] }).observed, want)
})

test('a process is meant by what it runs in', () => {
  const meant = (parts: Partial<typeof any>, want: boolean) =>
    assert.equal(verdictOf({ instrument: [{ ...any, ...parts }] }).observed, want)
  meant({ namespace: 'eu' }, true)
  meant({ namespace: 'e*', podName: 'shop-*', deploymentName: 'shop', containerName: 'web' }, true)
  meant({ namespace: 'us' }, false)
  meant({ namespace: 'eu', containerName: 'sidecar' }, false)
  // It has none: nothing stands for that, a star neither.
  meant({ daemonsetName: '*' }, false)
  meant({ statefulsetName: 'shop' }, false)
  meant({ podLabels: new Map([['tier', 'f*t']]) }, true)
  meant({ podLabels: new Map([['empty', '']]) }, true)
  meant({ podLabels: new Map([['tier', '']]) }, true)
  meant({ podLabels: new Map([['tier', 'back']]) }, false)
  meant({ podLabels: new Map([['none', '*']]) }, false)
})
