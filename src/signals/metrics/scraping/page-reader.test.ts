import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Family, LineFault, Page, PageFormat } from './exposition.ts'
import { readPage } from './page-reader.ts'
import { sampleKey } from './sample-key.ts'

const limits = { lenient: false, maxSamples: 0, maxLineBytes: 0 }

function pageOf(text: string, format: PageFormat = 'text', options = {}): Page {
  const page = readPage(Buffer.from(text, 'latin1'), format, { ...limits, ...options })
  if ('reason' in page) throw new Error(`line ${page.line}: ${page.reason}: ${page.excerpt}`)
  return page
}

function faultOf(text: string, format: PageFormat = 'text', options = {}): LineFault {
  const page = readPage(Buffer.from(text, 'latin1'), format, { ...limits, ...options })
  if (!('reason' in page)) throw new Error(`${JSON.stringify(text)} has ${page.samples} samples`)
  return page
}

function keysOf({ body, keyFrom, keyTo, samples }: Page): string[] {
  return Array.from({ length: samples }, (_, i) => {
    const { name, labels } = sampleKey(body, keyFrom[i]!, keyTo[i]!)!
    return [name, ...[...labels].map(pair => pair.join('='))].join('|')
  })
}

// What Prometheus 2.42 says to these was seen by letting it scrape them.

test('the text format is taken as Prometheus takes it', () => {
  const check = (text: string, ...keys: string[]) => assert.deepEqual(keysOf(pageOf(text)), keys, text)
  check('')
  check('\n \n\t\n')
  check('a 1', 'a')
  check('a\t1\t5\t\na  2 \n', 'a', 'a')
  check('a+1\na-1\na{}1\n', 'a', 'a', 'a')
  check('a{b="1",} 1\na { b = "1" , c= "2" } 1\n', 'a|b=1', 'a|b=1|c=2')
  check('a{b="1" c="2"} 1\na{b="1"c="2"} 1\n', 'a|b=1|c=2', 'a|b=1|c=2')
  check('a{b="x\ny"} 1\n', 'a|b=x\ny')
  check('a{b="x\\"\\\\\\n\\q"} 1\n', 'a|b=x"\\\n\\q')
  check('a{b="\0x\\\0"y"} 1\n', 'a|b=\0x\\\0"y')
  check('with:colons{_x="}"} 1\n', 'with:colons|_x=}')
  check('a 1\n# comment \xff\n#\n#TYPE a nonsense\n# HELP\n# TYPED a b\n# EOF\nb 1\n', 'a', 'b')
  check('a 1\n\0 nobody reads this', 'a')
  check('a 1\n#\0 nor this\nb 1', 'a')
  check('a 1\n# x\0 but this\nb 1', 'a', 'b')
  check('# HELP a\n# HELP b \n\t# TYPE a gauge\na 1\n', 'a')
  check(' a 1 -5\n', 'a')
  check('{"my.metric","l.x"="v"} 1\n{ "l\\"x"="v" , "a" , } 1\n{"b"}1\n', 'my.metric|l.x=v', 'a|l"x=v', 'b')
})

test('the text format is refused as Prometheus refuses it', () => {
  const check = (text: string, reason: RegExp, line = 1) => {
    const fault = faultOf(text)
    assert.match(fault.reason, reason, text)
    assert.equal(fault.line, line, text)
  }
  check('a 1\nb\nc 1\n', /no number after the name/, 2)
  check('a', /no number/)
  check('a{b="c"}', /no number after the labels/)
  check('a 1\r\n', /no number.*carriage return/)
  check('a 1\n\r\n', /metric name.*carriage return/, 2)
  check('a 1 5 6\n', /after the timestamp/)
  check('a 1 5.5\n', /whole number of milliseconds/)
  check('a 1 # {b="c"} 1\n', /milliseconds/)
  check('a 1 9223372036854775808\n', /milliseconds/)
  for (const value of ['true', '1_0', '0x10', '0x1p3', '1e309', '+NaN', '1,5', '1\0', '1{'])
    check(`a ${value}\n`, /no number/)
  for (const name of ['9a', 'a.b', '\xff', '"a"', '-']) check(`${name} 1\n`, /no number|no metric name/)
  check('a{,} 1\n', /label has no name/)
  check('a{b="1",,} 1\n', /label has no name/)
  check('a{=""} 1\n', /label has no name/)
  check('a{b:c="1"} 1\n', /no "="/)
  check("a{b='c'} 1\n", /no quotes/)
  check('a{b=\0"c"} 1\n', /no quotes/)
  check('a{b="c', /not closed/)
  check('a{b="c"', /not closed/)
  check('a{b="x\\\ny"} 1\n', /not closed/)
  check('a{b="c"}{d="e"} 1\n', /no number/)
  check('a{b="\xff"} 1\n', /not UTF-8/)
  check('a{b="1",b="2"} 1\n', /duplicate label/)
  check('a{"b\\n"="1","b\\n"="2"} 1\n', /duplicate label/)
  check(`a{${Array.from({ length: 50 }, (_, i) => `l${i % 49}="x"`)}} 1\n`, /duplicate label/)
  check('a{__name__="b"} 1\n', /__name__/)
  check('{b="c"} 1\n', /no metric name/)
  check('{} 1\n', /no metric name/)
  check('a{"b"} 1\n', /second metric name/)
  check('{""} 1\n', /empty/)
  check('{"a\0"} 1\n', /not closed/)
  check('{"\xff"} 1\n', /not UTF-8/)
  check('# TYPE a\n', /unknown metric type/)
  check('# TYPE a gauge \n', /unknown metric type/)
  check('# TYPE a  gauge\n', /unknown metric type/)
  check('# TYPE a gauge\r\n', /unknown metric type.*carriage return/)
  check('# TYPE a info\n', /unknown metric type/)
  check('# TYPE 9 gauge\n', /no metric name after TYPE/)
  check('# HELP \n', /no metric name after HELP/)
  check('# HELP a \xff\n', /not UTF-8/)
})

test('OpenMetrics is taken and refused as Prometheus does', () => {
  const taken = (text: string, ...keys: string[]) =>
    assert.deepEqual(keysOf(pageOf(text, 'openmetrics')), keys, text)
  const refused = (text: string, reason: RegExp, line = 1) => {
    const fault = faultOf(text, 'openmetrics')
    assert.match(fault.reason, reason, text)
    assert.equal(fault.line, line, text)
  }
  taken('# EOF')
  taken('a 1\n# EOF\n', 'a')
  taken('a{b="1",} 1 -5.5\n{"c.d","e f"="g"} -Inf\n# EOF\n', 'a|b=1', 'c.d|e f=g')
  taken('# HELP a \n# UNIT a_s s\n# UNIT a \n# TYPE a stateset\na 1 # {} 1\n# EOF\n', 'a')
  refused('', /does not end with "# EOF"/)
  refused('a 1\n', /does not end with "# EOF"/, 2)
  refused('a 1', /no number/)
  refused('a 1\n# EOF\n\n', /after "# EOF"/, 2)
  refused('a 1\n# EOFa', /after "# EOF"/, 2)
  refused('a 1\n\n# EOF\n', /empty/, 2)
  for (const line of [
    'a  1',
    'a\t1',
    ' a 1',
    'a {b="1"} 1',
    'a{ b="1"} 1',
    'a{b="1"}1',
    'a{b="1", c="2"} 1',
    'a 1 ',
    'a 1 5 6',
    'a 1 NaN',
    'a 1\r',
    'a{b="x',
    'a{b="1"c="2"} 1',
    'a 1 #',
    'a 1 #{b="c"} 1',
    'a 1 # {b="c"}',
    'a 1 # {b="c"} 1 NaN',
    'a 1 # {b="c"} 1 2 3',
    'a 1 # {b="\0"} 1',
    'a 1 # {b="\xff"} 1',
    'a 1 # {"b"} 1',
    'a 1 # {b="c"} x',
    '# a comment',
    '#HELP a b',
    '#  HELP a b',
    '# HELP a',
    '# TYPE a untyped',
    '# TYPE a gauge ',
    '# UNIT a s',
    '# UNIT s s',
    '\0',
  ])
    refused(`${line}\n# EOF\n`, /./)
})

test('values, timestamps and exemplars come with their samples', () => {
  const text = pageOf('a 4.9351e-05\na{b="c"} NaN 1395066363000\nb -Inf 0\n')
  assert.deepEqual([...text.values], [4.9351e-5, Number.NaN, Number.NEGATIVE_INFINITY])
  assert.deepEqual([...text.timesUs], [Number.NaN, 1395066363000000, 0])
  const metrics = pageOf(
    'a_bucket{le="1"} 8 1.5 # {trace_id="x\\"y"} 0.5 1520879607.789\nb 1 # {} 2\nc 3\n# EOF\n',
    'openmetrics',
  )
  assert.deepEqual([...metrics.timesUs], [1500000, Number.NaN, Number.NaN])
  assert.deepEqual(
    metrics.exemplars,
    new Map([
      [0, { labels: new Map([['trace_id', 'x"y']]), value: 0.5, timeUs: 1520879607789000 }],
      [1, { labels: new Map(), value: 2, timeUs: 0 }],
    ]),
  )
})

test('samples belong to the family that is declared, wherever on the page that is', () => {
  const check = (
    text: string,
    format: PageFormat,
    want: readonly (readonly [string, string, number, number])[],
  ) =>
    assert.deepEqual(
      pageOf(text, format).families.map(({ name, type, from, to }: Family) => [name, type, from, to]),
      want,
      text,
    )
  check('# TYPE h histogram\nh_bucket{le="1"} 1\nh_sum 1\nh_count 1\nh_total 1\nh 2\n', 'text', [
    ['h', 'histogram', 0, 3],
    ['h_total', 'unknown', 3, 4],
    ['h', 'histogram', 4, 5],
  ])
  check('# TYPE s summary\ns{quantile="1"} 1\ns_sum 1\ns_count 1\ns_bucket 1\n', 'text', [
    ['s', 'summary', 0, 3],
    ['s_bucket', 'unknown', 3, 4],
  ])
  check('a_total 1\na_created 1\nb 1\n# TYPE a counter\n# TYPE b untyped\n', 'text', [
    ['a', 'counter', 0, 1],
    ['a_created', 'unknown', 1, 2],
    ['b', 'unknown', 2, 3],
  ])
  check('# TYPE s summary\n# TYPE s_sum gauge\n# HELP s_count x\ns_sum 1\ns_count 1\n', 'text', [
    ['s_sum', 'gauge', 0, 1],
    ['s', 'summary', 1, 2],
  ])
  check('# TYPE a gauge\na{b="1"} 1\nc 1\na{b="2"} 1\n# TYPE a counter\na{b="3"} 1\n', 'text', [
    ['a', 'counter', 0, 1],
    ['c', 'unknown', 1, 2],
    ['a', 'counter', 2, 4],
  ])
  check(
    '# TYPE a counter\na_total 1\na_created 1\n# TYPE g gaugehistogram\ng_bucket{le="+Inf"} 1\ng_gsum 1\ng_gcount 1\ng_sum 1\n# TYPE i info\ni_info 1\n# EOF',
    'openmetrics',
    [
      ['a', 'counter', 0, 2],
      ['g', 'gaugehistogram', 2, 5],
      ['g_sum', 'unknown', 5, 6],
      ['i', 'info', 6, 7],
    ],
  )
  const told = pageOf('# HELP a x\\\\y\\n\\"z\\q\xc3\xa9\n# TYPE a gauge\na 1\n').families[0]
  assert.equal(told?.help, 'x\\y\n\\"z\\qé')
  const unit = pageOf('# UNIT "a b_s" s\n# HELP "a b_s" \\"\n{"a b_s"} 1\n# EOF\n', 'openmetrics').families[0]
  assert.deepEqual(unit, { name: 'a b_s', type: 'unknown', help: '"', unit: 's', from: 0, to: 1 })
})

test('a lenient reader leaves bad lines out, counts them, and tells the first ones', () => {
  const page = pageOf('a 1\nb x\nc 2\n# TYPE d nonsense\nd{e="f\ng 3\n', 'text', { lenient: true })
  assert.deepEqual(keysOf(page), ['a', 'c', 'g'])
  assert.equal(page.badLines, 3)
  assert.deepEqual(
    page.faults.map(({ line, excerpt }) => [line, excerpt]),
    [
      [2, 'b x'],
      [4, '# TYPE d nonsense'],
      [5, 'd{e="f'],
    ],
  )
  const many = pageOf('x\n'.repeat(10_000), 'text', { lenient: true })
  assert.equal(many.badLines, 10_000)
  assert.ok(many.faults.length < 20)
  assert.match(faultOf('a 1\nb\n', 'openmetrics', { lenient: true }).reason, /# EOF/)
})

test('more samples than the limit are refused, lenient or not', () => {
  assert.equal(pageOf('a 1\nb 1\n', 'text', { maxSamples: 2 }).samples, 2)
  assert.equal(pageOf('a 1\nb 1\nc x\n', 'text', { maxSamples: 2, lenient: true }).samples, 2)
  for (const lenient of [false, true])
    assert.deepEqual(faultOf('a 1\nb 1\nc 1 2\n', 'text', { maxSamples: 2, lenient }), {
      line: 3,
      reason: 'the page has more than 2 samples (sample_limit)',
      excerpt: 'c 1 2',
    })
})

test('a label of a megabyte, or a hundred thousand labels, cost their bytes, and a limit refuses them', () => {
  const long = `a{b="${'x'.repeat(1 << 20)}"} 1\n`
  assert.equal(pageOf(long).samples, 1)
  assert.match(faultOf(long, 'text', { maxLineBytes: 65536 }).reason, /longer than 65536 bytes/)
  const wide = `a{${Array.from({ length: 100_000 }, (_, i) => `l${i}="x"`)}} 1\n`
  assert.equal(sampleKey(Buffer.from(wide), 0, wide.length - 3)?.labels.size, 100_000)
  assert.match(faultOf(`# HELP a ${'x'.repeat(70000)}\n`, 'text', { maxLineBytes: 65536 }).reason, /longer/)
})

test('what is hostile takes time in proportion to its bytes', () => {
  const check = (line: string, count: number, samples: number) => {
    for (const format of ['text', 'openmetrics'] as const) {
      const text = `${line.repeat(count)}# EOF\n`
      assert.equal(pageOf(text, format, { lenient: true }).samples, samples, line)
    }
  }
  check('x\n', 200_000, 0)
  check('#x\n', 200_000, 0)
  check('a{b="\n', 100_000, 0)
  check('a{b="\\"\n', 100_000, 0)
  check('# HELP "\n', 100_000, 0)
  check('a{\n', 200_000, 0)
  check('a{"b\n', 100_000, 0)
  check(`${'a{b="c",'.repeat(1000)}\n`, 100, 0)
  check('\0\n', 100_000, 0)
})

test('an excerpt is printable and short', () => {
  const { excerpt } = faultOf(`a{b="\x1b[31m\0${'x'.repeat(500)}"} y\n`)
  assert.match(excerpt, /^a\{b="\\u001b\[31m\\u0000x+…$/)
  assert.equal(excerpt.length, 120)
})

test('bytes that are no key have none', () => {
  const key = (text: string) => sampleKey(Buffer.from(text), 0, text.length)
  assert.deepEqual(key('a'), { name: 'a', labels: new Map() })
  assert.deepEqual(key('a{b="c",b2="",}'), {
    name: 'a',
    labels: new Map([
      ['b', 'c'],
      ['b2', ''],
    ]),
  })
  for (const text of [
    '',
    ' ',
    'a ',
    'a{',
    'a{b="c"} 1',
    '{b="c"}',
    'a{b="1",b="2"}',
    '{"a","a"="1","\\a"="2","\\\\a"="3"}',
  ])
    assert.equal(key(text), undefined, text)
})

test('numbers and lines without end are refused where their limit is', () => {
  const check = (text: string, reason: RegExp) => {
    const page = readPage(Buffer.from(text), 'text', { lenient: false, maxSamples: 0, maxLineBytes: 100 })
    assert.match('reason' in page ? page.reason : '', reason)
  }
  check(`a ${'1'.repeat(1e6)}\n`, /no number/)
  check(`a 1 ${'1'.repeat(1e6)}\n`, /timestamp/)
  check(`a{b="${'x'.repeat(1e6)}`, /longer than 100 bytes/)
  check(`a{b="${'x'.repeat(94)}"} 1`, /longer than 100 bytes/)
  check(`a{b="${'x'.repeat(93)}"} 1`, /^$/)
  check(`a{b="x} 1\n${'b 1\n'.repeat(100)}`, /not closed/)
})
