import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shapes } from '../../../../test/helpers/page-mutation.ts'
import type { Page, PageFormat } from './exposition.ts'
import { PageLayout } from './page-layout.ts'
import { readPage } from './page-reader.ts'

const limits = { lenient: false, maxSamples: 0, maxLineBytes: 0 }

function layoutOf(text: string, format: PageFormat = 'text'): PageLayout {
  return new PageLayout(readPage(Buffer.from(text, 'latin1'), format, limits) as Page)
}

/** Values and times, or false. */
function read(layout: PageLayout, body: Buffer | string): false | number[][] {
  const values = new Float64Array(layout.samples)
  const timesUs = new Float64Array(layout.samples).fill(Number.NaN)
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body
  return layout.read(bytes, values, timesUs) && [[...values], [...timesUs]]
}

test('a page with other numbers is read', () => {
  const layout = layoutOf('# TYPE a gauge\na{b="c"} 1\na{b="d"}\t2.5 17 \n b 3')
  const { NaN: none } = Number
  assert.deepEqual(read(layout, '# TYPE a gauge\na{b="c"} -1e5\na{b="d"}\tNaN 18 \n b 400'), [
    [-1e5, none, 400],
    [none, 18000, none],
  ])
})

test('any other difference is seen', () => {
  const text = '# TYPE a gauge\na{b="c"} 1\na{b="d"} 2 17\nb 3\n'
  const layout = layoutOf(text)
  assert.notEqual(read(layout, text), false)
  for (const other of [
    text.replace('gauge', 'count'),
    text.replace('"d"', '"e"'),
    text.replace(' 17', ''),
    text.replace(' 1\n', ' 1 5\n'),
    text.replace(' 17', '  17'),
    text.replace('b 3', 'b  3'),
    text.replace(' 1\n', ' x\n'),
    text.replace(' 17', ' 1.7'),
    text.replace('\nb', '\r\nb'),
    `${text}\n`,
    `${text}c 1\n`,
    text.replace('b 3\n', ''),
    text.replace(' 1\n', ' 1e999\n'),
    ` ${text}`,
    '',
  ])
    assert.equal(read(layout, other), false, other)
})

test('a page that was cut off anywhere is another one, whatever stands behind it in memory', () => {
  for (const { format, body } of shapes) {
    const layout = new PageLayout(readPage(body, format, limits) as Page)
    const memory = Buffer.alloc(body.length + 100, '7')
    for (let cut = 0; cut < body.length; cut++) {
      body.copy(memory, 50)
      memory.fill('7', 50 + cut)
      const part = memory.subarray(50, 50 + cut)
      const whole = readPage(part, format, limits)
      const got = read(layout, part)
      if (got === false) continue
      assert.ok(!('reason' in whole), `cut at ${cut}`)
      assert.deepEqual(got[0], [...whole.values])
    }
  }
})

test('a number right behind a name may become a part of it, so such a page is read as a whole', () => {
  const layout = layoutOf('a+1\nb 2\n')
  assert.equal(read(layout, 'a+1\nb 2\n'), false)
  assert.equal(read(layout, 'a1\nb 2\n'), false)
  assert.equal(layout.keyBytes(0).toString(), 'a')
  assert.equal(layout.keyBytes(1).toString(), 'b')
  assert.notEqual(read(layoutOf('a{}+1\n'), 'a{}1\n'), false)
})

test('bytes that are no text are compared as bytes', () => {
  for (const odd of ['\0'.repeat(40), '\xff\x7f'.repeat(20), '\xf0\xff'.repeat(20)]) {
    const text = `a 1\n# ${odd}x\nb 2\n`
    const layout = layoutOf(text.replace('# \0', '# x\0'))
    const same = text.replace('# \0', '# x\0')
    assert.deepEqual(read(layout, same)?.[0 as never], [1, 2], JSON.stringify(odd))
    for (let i = 6; i < same.length - 5; i++) {
      const other = Buffer.from(same, 'latin1')
      other[i]! ^= 0x80
      assert.equal(read(layout, other), false, `byte ${i}`)
    }
  }
})

test('exemplars are read anew', () => {
  const page = (value: number) => `a_bucket{le="1"} ${value} # {t="${value}"} 0.${value}\nb 1\n# EOF\n`
  const layout = layoutOf(page(1), 'openmetrics')
  assert.deepEqual(layout.exemplars.get(0), { labels: new Map([['t', '1']]), value: 0.1, timeUs: 0 })
  assert.deepEqual(read(layout, page(22))?.[0 as never], [22, 1])
  assert.deepEqual(layout.exemplars.get(0), { labels: new Map([['t', '22']]), value: 0.22, timeUs: 0 })
  assert.equal(read(layout, 'a_bucket{le="1"} 2\nb 1\n# EOF\n'), false)
  assert.equal(read(layout, page(22).replace('0.22', 'x')), false)
})

test('a sample equals one of another layout by its key and the comments before it', () => {
  const one = layoutOf('# HELP x\na 1\nb{c="d"} 2\ne 3 5\nf 4\n')
  const other = layoutOf('b{c="d"} 7 \n# HELP x\na 8\ne 3\n# y\nf 4\n')
  const equal = (i: number, j: number) => one.chunkEquals(i, other, j) && other.chunkEquals(j, one, i)
  assert.ok(equal(0, 1))
  assert.ok(equal(1, 0))
  assert.ok(!one.chunkEquals(0, other, 0))
  assert.ok(!one.chunkEquals(2, other, 2), 'one has a timestamp')
  assert.ok(!one.chunkEquals(3, other, 3), 'one has a comment')
  assert.equal(one.keyBytes(1).toString(), 'b{c="d"}')
  assert.equal(one.keyBytes(2).toString(), 'e')
})

test('a layout keeps little more than the text', () => {
  const lines = Array.from({ length: 1000 }, (_, i) => `some_metric_name{label="value ${i}"} 12345\n`).join(
    '',
  )
  const layout = layoutOf(lines)
  assert.ok(layout.sizeBytes < lines.length + 8 * 1000)
  assert.equal(layoutOf('').samples, 0)
  assert.deepEqual(read(layoutOf('# x\n'), '# x\n'), [[], []])
  assert.equal(read(layoutOf(''), 'a 1\n'), false)
})
