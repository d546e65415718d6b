import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseExposition } from './exposition-text.ts'

function parse(text: string | Buffer, most = 1000) {
  return parseExposition(Buffer.from(text as string), most)
}

/** One family's samples: labels, then value. */
function samplesOf(text: string) {
  const [family, ...others] = parse(text)
  assert.equal(others.length, 0)
  return family!.samples.map(({ labels, value }) => [...labels, value])
}

test('samples have the type, help and labels of their family', () => {
  const text =
    '# HELP a_total Of a \\\\ and\\nb.\n# TYPE a_total counter\na_total{z="1",b="x"} 3\na_total{b="y",} 4\n\nb 5\n'
  assert.deepEqual(parse(text), [
    {
      name: 'a_total',
      type: 'counter',
      help: 'Of a \\ and\nb.',
      labels: ['b', 'z'],
      samples: [
        { labels: ['x', '1'], value: 3, distribution: undefined },
        { labels: ['y', ''], value: 4, distribution: undefined },
      ],
    },
    {
      name: 'b',
      type: 'untyped',
      help: undefined,
      labels: [],
      samples: [{ labels: [], value: 5, distribution: undefined }],
    },
  ])
})

test('blanks stand where they may', () => {
  const check = (text: string, ...want: (string | number)[][]) => assert.deepEqual(samplesOf(text), want)
  check(' \ta\t1\n  ', [1])
  check('a{ x = "1" , y="2" }   7\n', ['1', '2', 7])
  check('a{}1\n', [1])
  check('#\n#x\n# TYPE\n# HELP a\n# HELP a \n#\tTYPE\ta\tgauge\n\n \na 1\n', [1])
})

test('numbers are those of the format', () => {
  const check = (text: string, want: number) => assert.deepEqual(samplesOf(`a ${text}\n`), [[want]])
  check('+5', 5)
  check('.5', 0.5)
  check('5.', 5)
  check('1e-400', 0)
  check('-1.5E+3', -1500)
  check('NaN', Number.NaN)
  check('+Inf', Number.POSITIVE_INFINITY)
  check('-infinity', Number.NEGATIVE_INFINITY)
})

test('values of labels are unescaped', () => {
  const check = (raw: string, want: string) => assert.deepEqual(samplesOf(`a{x="${raw}"} 1\n`), [[want, 1]])
  check('', '')
  check('a\\\\b\\"c\\nd', 'a\\b"c\nd')
  check('ä {},=#\t\0', 'ä {},=#\t\0')
})

test('histograms and summaries are put together by their labels', () => {
  const [histogram, summary] = parse(
    [
      '# TYPE h histogram',
      'h_bucket{x="1",le="1"} 2',
      'h_bucket{le="+Inf",x="1"} 9',
      'h_bucket{x="1",le="0.5"} 1',
      'h_bucket{x="1",le="1"} 4.9',
      'h_count{x="1"} 9',
      'h_sum{x="1"} -2.5',
      'h_count{x="2"} 3',
      'h_bucket{x="3",le="+Inf"} 6',
      '# TYPE s summary',
      's{quantile="0.9"} NaN',
      's{quantile="0.5"} 7',
      's_count 2.7',
      's 1',
      '',
    ].join('\n'),
  )
  assert.deepEqual(histogram?.labels, ['x'])
  assert.deepEqual(
    histogram?.samples.map(({ labels, distribution }) => [labels[0], distribution]),
    [
      [
        '1',
        {
          parts: [
            [0.5, 1],
            [1, 4],
          ],
          sum: -2.5,
          count: 9,
        },
      ],
      ['2', { parts: [], sum: 0, count: 3 }],
      ['3', { parts: [], sum: 0, count: 6 }],
    ],
  )
  assert.deepEqual(summary?.samples[0]?.distribution, {
    parts: [
      [0.5, 7],
      [0.9, Number.NaN],
    ],
    sum: 0,
    count: 2,
  })
  assert.deepEqual(
    parse('a_sum 1\nb_count{le="1"} 2\n').map(({ name, labels }) => [name, ...labels]),
    [['a_sum'], ['b_count', 'le']],
  )
})

test('a text that breaks the rules is refused with the line', () => {
  const check = (text: string | Buffer, message: RegExp) => assert.throws(() => parse(text), message)
  check('a 1\nb 2', /^Error: line 2: it does not end with a line feed/)
  check('# HELP a x', /line 1: it does not end with a line feed/)
  check('a\n', /the value is not a number: ""/)
  check('a 1\r\n', /the value is not a number: "1\\r"/)
  for (const text of ['0x10', '1_000', '1e400', 'one', '+nan', '--1'])
    check(`a ${text}\n`, /line 1: the value is not a number/)
  check('a 1 \n', /unexpected text after the value/)
  check('a 1 # x\n', /unexpected text after the value/)
  check('a 1 1700000000000\n', /it has a timestamp/)
  check('a 1 1700000000000 x\n', /after the timestamp/)
  check('1a 1\n', /does not begin with a metric name/)
  check('\ufeffa 1\n', /does not begin with a metric name/)
  check('{"a"} 1\n', /does not begin with a metric name/)
  check('a-b 1\n', /the value is not a number: "-b"/)
  check('a{1x="1"} 1\n', /a label has no name/)
  check('a{,} 1\n', /a label has no name/)
  check('a{x="1",,} 1\n', /a label has no name/)
  check('a{x:y="1"} 1\n', /the label x has no "="/)
  check('a{x=1} 1\n', /no value in quotes/)
  check('a{x="1\n"} 1\n', /does not end/)
  check('a{x="1\\\n"} 1\n', /does not end/)
  check('a{x="1"\n', /the label x does not end/)
  check('a{x="1" y="2"} 1\n', /the label x does not end/)
  check('a{x="\\t"} 1\n', /\\t is not an escape sequence/)
  check('a{x="1",x="2"} 1\n', /the label x twice/)
  check('a{__name__="b"} 1\n', /__name__ is reserved/)
  check(Buffer.from('a{x="\xff"} 1\n', 'latin1'), /not UTF-8/)
  check('# TYPE a foo\n', /"foo" is not a type/)
  check('# TYPE a gauge \n', /"gauge " is not a type/)
  check('# TYPE a-b gauge\n', /invalid metric name after TYPE/)
  check('# TYPE a gauge\n# TYPE a gauge\n', /line 2: a has a second TYPE/)
  check('a 1\n# TYPE a gauge\n', /line 2: a has a second TYPE, or one after its samples/)
  check('# HELP a x\n# HELP a x\n', /line 2: a has a second HELP/)
  check('# HELP a \\t\n', /is not an escape sequence/)
  check('# TYPE h histogram\nh_bucket{le="x"} 1\n', /the label le is not a number/)
  check('# TYPE h histogram\nh_count -1\n', /a count is negative/)
})

test('what grows has a bound', () => {
  assert.equal(parse('a 1\n'.repeat(10), 10)[0]?.samples.length, 10)
  assert.throws(() => parse('a 1\n'.repeat(11), 10), /line 11: there are too many samples/)
  const comments = Array.from({ length: 11 }, (_, i) => `# HELP a${i} b\n`).join('')
  assert.throws(() => parse(comments, 10), /line 11: there are too many metrics/)
  const labels = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => `l${from + i}="1"`).join()
  assert.equal(parse(`a{${labels(0, 128)}} 1\n`)[0]?.labels.length, 128)
  assert.throws(() => parse(`a{${labels(0, 129)}} 1\n`), /more than 128 labels/)
  assert.throws(
    () => parse(`a{${labels(0, 100)}} 1\na{${labels(100, 100)}} 1\n`),
    /line 2: a has more than 128 labels/,
  )
})

test('junk of a megabyte ends in time', () => {
  const size = 1 << 20
  const before = process.cpuUsage().user
  for (const text of ['a{', 'a{x="', '\\', '"', ' ', '#', '# HELP a ', '1', 'a', '\0', '{}', 'a{x="\\"'])
    for (const end of ['', '\n']) {
      const junk = text.repeat(size / text.length) + end
      try {
        parse(junk)
      } catch (error) {
        assert.match((error as Error).message, /^line 1: .{1,200}$/s)
      }
    }
  const families = Array.from({ length: 50_000 }, (_, i) => `m${i}_total{x="${i}"} ${i}\n`).join('')
  assert.equal(parse(families, 50_000).length, 50_000)
  assert.ok(process.cpuUsage().user - before < 20e6)
})
