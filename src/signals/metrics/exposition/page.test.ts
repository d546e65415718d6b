import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collectGarbage } from '../../../../test/helpers/heap.ts'
import { counter, type Family, family, gauge, type Readings } from '../../../foundation/model/collector.ts'
import { type BoundsSettings, boundsOf } from './bounds.ts'
import { Page, type Source } from './page.ts'

const open: BoundsSettings = {
  enabled: true,
  max_metrics: 0,
  include_metrics: [],
  exclude_metrics: [],
  drop_labels: [],
}

function pageOf(settings: Partial<BoundsSettings> = {}, namespace = 'node') {
  const page = new Page({ namespace, bounds: boundsOf({ ...open, ...settings }) })
  const sources = new Map<string, Source>()
  const source = (name: string): Source => {
    const known = sources.get(name) ?? { name, round: 0, duplicates: 0 }
    sources.set(name, known)
    return known
  }
  const text = (...names: string[]) =>
    page.write(new Set(names.length > 0 ? names.map(source) : sources.values())).text
  return {
    page,
    source,
    read: (name: string, put: (readings: Readings) => void) => put(page.begin(source(name))),
    text,
    lines: (...names: string[]) =>
      text(...names)
        .split('\n')
        .filter(line => line !== '' && !line.startsWith('#')),
  }
}

const busy = counter('cpu_seconds_total', 'Time.', { labels: ['cpu', 'mode'] })
const up = gauge('up', 'A "quoted" \\ text\nof two lines.')
const files = gauge('files', 'Files.', { labels: ['device'] })

test('families stand in the order of their names, series in that of their labels', () => {
  const { read, text } = pageOf()
  const info = gauge('info', 'Info.', { labels: ['a', 'b', 'c', 'd'] })
  const infoOfOne = gauge('info', 'Info.', { labels: ['z'] })
  read('all', readings => {
    readings.set(up, 1)
    readings.setAll(info, 1, ['1', '2', '3', '4'])
    readings.setAll(info, 2, ['1', '2', '3', '10'])
    readings.set(infoOfOne, 3, 'x')
    readings.set(busy, 2.5, '10', 'idle')
    readings.set(busy, 1e6, '2', 'user')
    readings.set(busy, 1, '2', 'idle')
  })
  assert.equal(
    text(),
    `# HELP node_cpu_seconds_total Time.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="10",mode="idle"} 2.5
node_cpu_seconds_total{cpu="2",mode="idle"} 1
node_cpu_seconds_total{cpu="2",mode="user"} 1e+06
# HELP node_info Info.
# TYPE node_info gauge
node_info{z="x"} 3
node_info{a="1",b="2",c="3",d="10"} 2
node_info{a="1",b="2",c="3",d="4"} 1
# HELP node_up A "quoted" \\\\ text\\nof two lines.
# TYPE node_up gauge
node_up 1
`,
  )
})

test('label values are escaped', () => {
  const { read, lines } = pageOf()
  read('all', readings => readings.set(files, 1, 'a "b" \\ c\nd'))
  assert.deepEqual(lines(), ['node_files{device="a \\"b\\" \\\\ c\\nd"} 1'])
})

test('what a collector no longer reads is not shown, and what others read is', () => {
  const { read, lines } = pageOf()
  read('one', readings => {
    readings.set(files, 1, 'a')
    readings.set(files, 2, 'b')
  })
  read('two', readings => readings.set(up, 1))
  read('one', readings => readings.set(files, 3, 'b'))
  assert.deepEqual(lines(), ['node_files{device="b"} 3', 'node_up 1'])
  assert.deepEqual(lines('two'), ['node_up 1'])
  read('one', () => undefined)
  assert.deepEqual(lines(), ['node_up 1'])
})

test('series that come back are shown again, and those that stay away are forgotten', () => {
  const { page, read, source } = pageOf()
  for (let round = 0; round < 1000; round++)
    read('one', readings => readings.set(files, round, `d${round % 500}`))
  const known = [...page.read(new Set([source('one')]))]
  assert.deepEqual(
    known.map(([name, series]) => [name, series.map(({ labels, value }) => [...labels, value])]),
    [['node_files', [['d499', 999]]]],
  )
  assert.ok(page.size < 60, `${page.size} series are kept`)
  assert.ok(page.bytes > page.size * 300 && page.bytes < page.size * 600, `${page.bytes} bytes`)
})

test('a series that is read twice keeps its first reading and is counted', () => {
  const { read, lines, source } = pageOf()
  const same = gauge('files', 'Files.', { labels: ['device'] })
  read('one', readings => {
    readings.set(files, 1, 'a')
    readings.set(files, 2, 'a')
    readings.set(same, 3, 'a')
    readings.set(same, 4, 'b')
  })
  assert.deepEqual(lines(), ['node_files{device="a"} 1', 'node_files{device="b"} 4'])
  assert.equal(source('one').duplicates, 2)
})

test('a family that says something else under a known name is left out and counted', () => {
  const { read, lines, source } = pageOf()
  const other = counter('files', 'Other files.', { labels: ['device'] })
  read('one', readings => {
    readings.set(files, 1, 'a')
    readings.set(other, 2, 'b')
  })
  assert.deepEqual(lines(), ['node_files{device="a"} 1'])
  assert.equal(source('one').duplicates, 1)
})

test('a family may say something else when nothing of what it said is left', () => {
  const { read, text, source } = pageOf()
  const later = counter('files', 'Other files.', { labels: ['device'] })
  read('one', readings => readings.set(files, 1, 'a'))
  read('one', readings => readings.set(later, 2, 'a'))
  assert.match(
    text(),
    /^# HELP node_files Other files.\n# TYPE node_files counter\nnode_files\{device="a"\} 2\n$/,
  )
  assert.equal(source('one').duplicates, 0)
})

test('names that are never seen again leave nothing', () => {
  const { page, read } = pageOf()
  for (let round = 0; round < 500; round++)
    read('one', readings => readings.set(gauge(`g${round}`, 'G.'), round))
  assert.ok(page.families().length < 60, `${page.families().length} families are kept`)
})

test('a family that turns into another kind of metric is written as that', () => {
  const { read, lines } = pageOf()
  const spans = family('histogram', 'wait', 'Waits.')
  const since = gauge('wait', 'Waits.')
  read('one', readings => readings.setDistribution(spans, { parts: [[1, 2]], sum: 3, count: 2 }, []))
  assert.equal(lines().length, 4)
  read('one', readings => readings.set(since, 7))
  assert.deepEqual(lines(), ['node_wait 7'])
  read('one', readings => readings.setDistribution(spans, { parts: [[1, 2]], sum: 3, count: 2 }, []))
  assert.equal(lines().length, 4)
})

test('a family may have very many series, of several family objects', { timeout: 30_000 }, () => {
  const { page, read } = pageOf()
  const again = gauge('files', 'Files.', { labels: ['device'] })
  const put = (readings: Readings) => {
    for (let i = 0; i < 150_000; i++) readings.set(i % 2 === 0 ? files : again, i, `d${i}`)
  }
  read('one', put)
  for (let round = 0; round < 40; round++) read('one', readings => readings.set(files, 1, 'd0'))
  assert.equal(page.size, 1)
  read('one', put)
  for (let round = 0; round < 40; round++)
    read('one', readings => {
      if (round % 20 === 0) put(readings)
    })
  assert.equal(page.size, 150_000)
})

test('a series whose collector shows it no longer may be shown by another', () => {
  const { read, lines, source } = pageOf()
  const both = (value: number) => (readings: Readings) => readings.set(up, value)
  read('one', both(1))
  read('two', both(2))
  assert.deepEqual([lines(), source('two').duplicates], [['node_up 1'], 1])
  read('one', () => undefined)
  read('two', both(2))
  assert.deepEqual([lines(), source('two').duplicates], [['node_up 2'], 1])
  read('one', both(1))
  assert.deepEqual([lines(), source('one').duplicates], [['node_up 2'], 1])
})

test('family objects that are never seen again leave nothing', async () => {
  const { read } = pageOf()
  const first = new WeakRef(gauge('up', 'Up, as told at first.'))
  for (let round = 0; round < 100; round++)
    read('one', readings => readings.set(round === 0 ? first.deref()! : gauge('up', `Up ${round}.`), 1))
  // What a WeakRef was asked for stays until the turn ends.
  await new Promise(setImmediate)
  collectGarbage()
  assert.equal(first.deref(), undefined)
})

test('distributions are written part by part', () => {
  const { read, lines } = pageOf()
  const seconds = family('histogram', 'wait_seconds', 'Wait.', { labels: ['queue'] })
  const quantiles = family('summary', 'rpc_seconds', 'RPC.', { absolute: true })
  read('one', readings => {
    readings.setDistribution(
      seconds,
      {
        parts: [
          [0.5, 1],
          [1e6, 3],
        ],
        sum: 4.5,
        count: 4,
      },
      ['q'],
    )
    readings.setDistribution(quantiles, { parts: [[0.9, 2]], sum: 7, count: 5 }, [])
  })
  assert.deepEqual(lines(), [
    'node_wait_seconds_bucket{queue="q",le="0.5"} 1',
    'node_wait_seconds_bucket{queue="q",le="1e+06"} 3',
    'node_wait_seconds_bucket{queue="q",le="+Inf"} 4',
    'node_wait_seconds_sum{queue="q"} 4.5',
    'node_wait_seconds_count{queue="q"} 4',
    'rpc_seconds{quantile="0.9"} 2',
    'rpc_seconds_sum 7',
    'rpc_seconds_count 5',
  ])
})

test('the namespace is the first word of all names but absolute ones', () => {
  const { read, lines } = pageOf({}, 'host')
  read('one', readings => {
    readings.set(up, 1)
    readings.set(gauge('app_up', 'App.', { absolute: true }), 2)
  })
  assert.deepEqual(lines(), ['app_up 2', 'host_up 1'])
})

test('families are included and excluded by their whole names', () => {
  const put = (readings: Readings) => {
    readings.set(up, 1)
    readings.set(files, 2, 'a')
    readings.set(busy, 3, '0', 'idle')
  }
  const check = (settings: Partial<BoundsSettings>, names: string[]) => {
    const { read, lines } = pageOf(settings)
    read('one', put)
    assert.deepEqual(
      lines().map(line => line.replace(/[ {].*/, '')),
      names,
    )
  }
  check({ include_metrics: ['node_up', 'node_f.*'] }, ['node_files', 'node_up'])
  check({ include_metrics: ['up'] }, [])
  check({ exclude_metrics: ['node_cpu.*'] }, ['node_files', 'node_up'])
  check({ enabled: false, exclude_metrics: ['node_cpu.*'] }, [
    'node_cpu_seconds_total',
    'node_files',
    'node_up',
  ])
})

test('families above the bound are left out and counted', () => {
  const { page, read, source } = pageOf({ max_metrics: 2 })
  read('one', readings => {
    readings.set(up, 1)
    readings.set(files, 2, 'a')
    readings.set(busy, 3, '0', 'idle')
  })
  const { families, series, dropped, text } = page.write(new Set([source('one')]))
  assert.deepEqual({ families, series, dropped }, { families: 2, series: 2, dropped: 1 })
  assert.doesNotMatch(text, /node_up/)
})

test('a label that is dropped adds up counters and keeps the last gauge', () => {
  const { read, lines, source } = pageOf({ drop_labels: ['cpu', 'device'] })
  const put = (readings: Readings) => {
    readings.set(busy, 1, '0', 'idle')
    readings.set(busy, 2, '1', 'idle')
    readings.set(busy, 4, '1', 'user')
    readings.set(files, 5, 'a')
    readings.set(files, 6, 'b')
  }
  read('one', put)
  read('one', put)
  assert.deepEqual(lines(), [
    'node_cpu_seconds_total{mode="idle"} 3',
    'node_cpu_seconds_total{mode="user"} 4',
    'node_files 6',
  ])
  assert.equal(source('one').duplicates, 0)
})

test('of distributions that a dropped label makes one the first stays, and the others are counted', () => {
  const { read, lines, source } = pageOf({ drop_labels: ['cpu'] })
  const spans = family('summary', 'wait', 'Waits.', { labels: ['cpu'] })
  read('one', readings => {
    readings.setDistribution(spans, { parts: [], sum: 3, count: 2 }, ['0'])
    readings.setDistribution(spans, { parts: [], sum: 4, count: 5 }, ['1'])
  })
  assert.deepEqual(lines(), ['node_wait_sum 3', 'node_wait_count 2'])
  assert.equal(source('one').duplicates, 1)
})

test('a family with a wrong number of label values is a mistake in code', () => {
  const { read } = pageOf()
  assert.throws(() => read('one', readings => readings.set(busy, 1, '0')), /has 2 labels, but got 1 values/)
  assert.throws(() => gauge('a', 'A.', { labels: ['b', 'a'] }), /out of order/)
  assert.throws(() => gauge('a-b', 'A.'), /not a metric name/)
})

test('a reading that is not new makes nothing', () => {
  const { page, read, source } = pageOf()
  const families: Family[] = []
  for (let i = 0; i < 20; i++) families.push(gauge(`g${i}`, 'G.', { labels: ['a', 'b', 'c'] }))
  const put = (readings: Readings) => {
    for (const each of families) readings.setAll(each, 1, ['x', 'y', 'z'])
  }
  read('one', put)
  const before = page.size
  for (let i = 0; i < 100; i++) read('one', put)
  assert.equal(page.size, before)
  assert.equal(source('one').duplicates, 0)
})

test('a page after many rounds is that of the last readings alone', () => {
  const one = pageOf()
  const { page, source } = one
  const names = ['a', 'b', 'c', 'd']
  const families = [
    up,
    busy,
    files,
    counter('c_total', 'C.'),
    gauge('of_three', 'T.', { labels: ['x', 'y', 'z'] }),
  ]
  const latency = family('histogram', 'latency', 'L.', { labels: ['device'] })
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((seed / 2 ** 31) * below)
  }
  /** Each source has families of its own, so that no reading depends on others. */
  const own = new Map(
    names.map(name => [name, families.map(each => ({ ...each, name: `${name}_${each.name}` }))]),
  )
  const last = new Map<string, (readings: Readings) => void>()
  for (let round = 0; round < 300; round++) {
    for (const name of names) {
      if (random(8) === 0) continue
      const kind = random(6)
      const offset = kind === 0 ? random(5) : 0
      const devices = kind === 1 ? random(4) : 3
      const values = Array.from({ length: 20 }, () => random(3))
      const put = (readings: Readings) => {
        if (kind === 2) return
        own.get(name)!.forEach((_, i, all) => {
          const each = all[(i + offset) % all.length]!
          const labels = each.labels.length
          for (let device = 0; device < (labels === 0 ? 1 : devices); device++)
            readings.setAll(
              each,
              values[i * 4 + device]!,
              Array.from({ length: labels }, (_, at) => `${device}${at}`),
            )
        })
        const of = { ...latency, name: `${name}_latency` }
        readings.setDistribution(of, { parts: [[1, values[0]!]], sum: values[1]!, count: values[2]! }, ['x'])
      }
      last.set(name, put)
      put(page.begin(source(name)))
      if (random(5) === 0) put(page.begin(source(name)))
    }
    const shown = random(4) === 0 ? names.filter(() => random(2) === 0) : names
    const alone = pageOf()
    for (const name of names) last.get(name)?.(alone.page.begin(alone.source(name)))
    const textOf = (of: ReturnType<typeof pageOf>) => of.page.write(new Set(shown.map(of.source))).text
    assert.equal(textOf(one), textOf(alone))
  }
})

test('labels that a collector uses again for other readings are not taken for the old ones', () => {
  const { read, lines } = pageOf()
  const long = gauge('long', 'L.', { labels: ['a', 'b', 'c'] })
  const labels = ['1', '2', '3']
  for (const value of [1, 2])
    read('all', readings => {
      for (const last of ['3', '4']) {
        labels[2] = last
        readings.setAll(long, value, labels)
      }
    })
  assert.deepEqual(lines(), ['node_long{a="1",b="2",c="3"} 2', 'node_long{a="1",b="2",c="4"} 2'])
})

test('a family that vanishes in the round in which old series are removed is no longer on the page', () => {
  for (let last = 37; last < 43; last++) {
    const { read, lines } = pageOf()
    for (let round = 1; round <= last + 1; round++)
      for (const [name, family] of [['one', files] as const, ['two', gauge('two', 'T.')] as const])
        read(name, readings => {
          if (round === 1 && name === 'one') readings.set(family, 1, 'sda')
          if (round <= last) readings.set(name === 'one' ? up : family, 1)
          if (round === last) assert.ok(lines().length > 0)
        })
    assert.deepEqual(lines(), [], `after round ${last}`)
  }
})
