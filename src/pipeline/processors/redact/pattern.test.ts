import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { patternFault, requiredLiteral } from './pattern.ts'

test('a pattern that matches the empty text, or is none, is refused', () => {
  const check = (source: string, fault: RegExp) => assert.match(patternFault(source), fault, source)
  for (const source of ['', 'a*', 'a?', '(a|)', '^', '$', 'x{0,3}', '\\b', '\\B', '(?i)', '[0-9]*', 'a*|b+'])
    check(source, /empty text/)
  check('a(', /./)
  check('a(?=b)', /lookaround/)
  check('(a)\\1', /backreference/)
  for (const source of ['a+', '\\d{3}', 'id=\\w*', '(?i)secret', 'a|b'])
    assert.equal(patternFault(source), '')
})

test('the required literal is the longest text that every match holds', () => {
  const check = (source: string, want: string) => assert.equal(requiredLiteral(source), want, source)
  check('emp-\\d{6}', 'emp-')
  check('\\bEMP\\d+', 'EMP')
  check('user_id=[0-9]+&', 'user_id=')
  check('a[bc]def', 'def')
  check('ab?cd', 'cd')
  check('ab+cd', 'ab')
  check('abc{2}de', 'ab')
  check('abc*', 'ab')
  check('x\\.y\\.z', 'x.y.z')
  check('(foo|bar)baz', 'baz')
  check('a(bcd)?e', 'a')
  check('[]x]abc', 'abc')
  check('[[:alpha:]]abc', 'abc')
  check('[^\\]]abc', 'abc')
  check('^abc$', 'abc')
  check('{a}', 'a')
})

test('where it is not easily seen what a pattern needs, nothing is required', () => {
  for (const source of [
    'foo|bar',
    '(?i)foo',
    '\\x41\\x42',
    '\\Qa.b\\E',
    '\\101',
    '\\d+',
    '.*',
    '(foo)',
    'é',
    'fooo{a|b',
  ])
    assert.equal(requiredLiteral(source), '', source)
})

test('every match of a pattern holds its required literal', () => {
  const texts = [
    'EMP123',
    'emp-123456',
    'aXcd',
    'abcd',
    'acd',
    'abbcd',
    'A',
    'AB',
    'foo',
    'bar',
    'a.b',
    '{a}',
    'x{2}',
    'b',
  ]
  const sources = [
    'ab?cd',
    'ab+cd',
    'a{1,2}b',
    'x\\{2\\}',
    'foo|bar',
    '\\x41',
    'a(b|c)*d',
    '[ab]+',
    '(?:ab)?c',
    '{a',
    'a\\.b',
    'fo{a|b',
  ]
  for (const source of sources)
    for (const text of texts) {
      const found = linearRegExp(source).exec(text)?.[0]
      if (found !== undefined) assert.ok(found.includes(requiredLiteral(source)), `${source} on ${text}`)
    }
})
