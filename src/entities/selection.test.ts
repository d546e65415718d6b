import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge, type ProcessSelector, type SelectionRules } from './selection.ts'

const any: ProcessSelector = { ports: [], executable: '', name: '', unknown: false }
const shop = { name: 'shop', executable: '/usr/bin/node', listening: () => [8080, 9229] }

const check = (rules: Partial<SelectionRules>, observed: boolean, reason: RegExp) => {
  const verdict = judge({ instrument: [], exclude: [], ...rules }, shop)
  assert.equal(verdict.observed, observed)
  assert.match(verdict.reason, reason)
}

test('without rules everything is observed', () => check({}, true, /^every process/))

test('everything that one entry gives must hold, and one entry suffices', () => {
  check({ instrument: [{ ...any, name: 'shop', ports: [{ from: 80, to: 80 }] }] }, false, /no entry/)
  check(
    {
      instrument: [
        { ...any, name: 'till' },
        { ...any, ports: [{ from: 8000, to: 8999 }] },
      ],
    },
    true,
    /instrument\[1\]/,
  )
})

test('what is excluded is not observed, whatever else means it', () => {
  check(
    { instrument: [{ ...any, name: 'shop' }], exclude: [{ ...any, executable: '*/node' }] },
    false,
    /exclude\[0\]/,
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
    check({ instrument: [{ ...any, name }] }, want, /./)
})

test('an entry that asks for what is not known of a process means none', () => {
  check({ instrument: [{ ...any, unknown: true }] }, false, /no entry/)
  check({ exclude: [{ ...any, unknown: true }] }, true, /./)
})
