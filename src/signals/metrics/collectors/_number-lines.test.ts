import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NumberLines } from './_number-lines.ts'
import { gauge, type Readings } from './collector.ts'

const families = new Map(['a', 'ab', 'c'].map(name => [name, gauge(name, 'A number.')]))

test('numbers follow their names when lines come, go and change places', () => {
  const asked: string[] = []
  const lines = new NumberLines('/proc/x', name => {
    asked.push(name)
    return families.get(name)
  })
  const check = (text: string, want: Record<string, number>) => {
    const found: Record<string, number> = {}
    const set: Readings['set'] = ({ name }, value) => {
      found[name] = value
    }
    lines.show(Buffer.from(text), { set } as Readings)
    assert.deepEqual(found, want, text)
  }
  check('a 1\nb 2\nab\t3\nc 4\n', { a: 1, ab: 3, c: 4 })
  assert.deepEqual(asked, ['a', 'b', 'ab', 'c'])
  check('a 5\nb x\nab\t6\nc 7', { a: 5, ab: 6, c: 7 })
  assert.deepEqual(asked.slice(4), ['ab'], 'a name is not made again')
  check('ab 1\na 2\n', { a: 2, ab: 1 })
  check('b 1\nc\n', {})
})

test('what is no name and number is a fault that names the file', () => {
  const check = (text: string, message: string) =>
    assert.throws(
      () => new NumberLines('/proc/x', name => families.get(name)).show(Buffer.from(text), {} as Readings),
      { message },
    )
  check('', 'cannot read /proc/x: no numbers found')
  check('\n\nword\n', 'cannot read /proc/x: no numbers found')
  check('b 1\nb x\n', 'cannot read /proc/x: line 2 has no number')
})
