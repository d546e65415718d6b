import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readProcessing } from '../../../src/config/index.ts'
import { asFile, examples, partsOfLine } from './rule-texts.ts'

test('examples are rules that svc takes, as they are and as a file has them', () => {
  for (const { name, rules } of examples)
    for (const text of [rules, asFile(rules)]) {
      const { problems, warnings } = readProcessing('rules', text)
      assert.deepEqual([problems, warnings], [[], []], name)
    }
})

test('rules go below pipeline once', () => {
  const check = (rules: string, want: string) => assert.equal(asFile(rules), want)
  check('limits:\n  rate: {}\n\n', 'pipeline:\n  limits:\n    rate: {}\n')
  check('a:\n\n  b: 1', 'pipeline:\n  a:\n\n    b: 1\n')
  check('# mine\npipeline:\n  a: 1', '# mine\npipeline:\n  a: 1\n')
})

test('a line is told with what is meant in it', () => {
  const check = (place: readonly [number, number, number], want: unknown) => {
    const [line, column, length] = place
    assert.deepEqual(partsOfLine('one\ntwo three', { line, column, length }), want)
  }
  check([2, 5, 5], ['two ', 'three', ''])
  check([1, 1, 0], ['', 'o', 'ne'])
  check([2, 10, 3], ['two three', '', ''])
  check([0, 0, 0], undefined)
  check([3, 1, 1], undefined)
})
