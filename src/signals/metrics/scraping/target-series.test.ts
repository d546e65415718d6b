import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mutated, seeded, shapes } from '../../../../test/helpers/page-mutation.ts'
import {
  openMetrics,
  pageOf,
  passThrough,
  ReceivedSeries,
  targetOf,
} from '../../../../test/helpers/received-series.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { PageError } from './page-error.ts'
import { PageRoom } from './page-room.ts'
import { compileRelabel, type RelabelRule } from './relabel.ts'
import type { ScrapeJob } from './scrape-job.ts'
import { type Taken, TargetSeries } from './target-series.ts'

const timeUs = 1.75e15
const sequences = soak ? 30_000 : 300

function open(own: Partial<ScrapeJob> = {}, told = new ReceivedSeries()) {
  const target = targetOf(own)
  const series = new TargetSeries(told.sink, target)
  let scrapes = 0
  const take = (text: string, contentType?: string) =>
    series.take(pageOf(text, contentType), timeUs + 1e6 * scrapes++)
  return { series, told, take, target }
}

function rule(written: object): RelabelRule {
  const compiled = compileRelabel(written)
  assert.ok('action' in compiled)
  return compiled
}

/** So many samples, with what `text` says of each. */
const lines = (count: number, text: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => text(i)).join('')

test('whatever the pages before it were, and however its metrics go, a page tells the same', async () => {
  let kept = 0
  for (let seed = 0; seed < sequences; seed++) {
    const random = seeded(seed)
    const { format, body } = shapes[seed % shapes.length]!
    const contentType = format === 'openmetrics' ? openMetrics : 'text/plain; version=0.0.4'
    const own = { lenient: random() < 0.5, honorLabels: random() < 0.5, honorTimestamps: random() < 0.7 }
    const ready = open(own)
    const whole = open(own, new ReceivedSeries(passThrough))
    let page = body
    for (let scrape = 0; scrape < 8; scrape++) {
      if (random() < 0.7) page = mutated(random() < 0.3 ? body : page, random)
      const alone = open(own)
      const got: unknown[] = []
      for (const { series, told } of [ready, whole, alone]) {
        const before = { ...told.lost }
        const taken = await series
          .take(pageOf(page, contentType), timeUs + scrape)
          .catch((error: unknown) => error)
        const points = told.take().filter(({ ended }) => !ended)
        const lost = Object.entries(told.lost).map(([reason, all]) => [reason, all - (before[reason] ?? 0)])
        if (taken instanceof Error) assert.ok(taken instanceof PageError, String(taken))
        got.push({
          taken: taken instanceof Error ? taken.message : { ...(taken as Taken), added: 0 },
          points: points
            .map(point => JSON.stringify({ ...point, fields: { ...zeros, ...point.fields } }))
            .sort(),
          lost: lost.filter(([, points]) => points !== 0).sort(),
        })
        kept += points.length
      }
      const at = `seed ${seed}, scrape ${scrape}: ${JSON.stringify(page.toString('latin1'))}`
      assert.deepEqual(got[0], got[2], at)
      assert.deepEqual(got[1], got[2], at)
    }
    assert.equal(ready.told.contradictions, 0)
  }
  assert.ok(kept > 10 * sequences, `${kept} points`)
})

/** A template writes these also where they are 0. */
const zeros = { count: '0', sum: 0, timeUnixNano: '0' }

test('a page is read as a whole once, and again when something but its numbers differs', async () => {
  const { series, told, take } = open()
  const taken = [await take('a 1\nb{c="d"} 2\n'), await take('a 10\nb{c="d"} 20\n'), await take('a 3\nc 5\n')]
  assert.deepEqual(
    taken.map(({ samples, kept, added }) => [samples, kept, added]),
    [
      [2, 2, 2],
      [2, 2, 0],
      [2, 2, 1],
    ],
  )
  assert.equal(series.wholeReads, 2)
  assert.deepEqual(told.lines(), [
    'a{} 1',
    'a{} 10',
    'a{} 3',
    'b{c=d} 2',
    'b{c=d} 20',
    'b{c=d} ended',
    'c{} 5',
  ])
})

test('what a page says in another order, or of one series twice, does not end', async () => {
  const { told, take } = open({ metricRelabel: [rule({ action: 'labeldrop', regex: 'pod' })] })
  await take('a{x="1",y="2"} 1\nb{pod="p"} 1\nb{pod="q"} 2\nc 3\n')
  assert.deepEqual(told.lines(), ['a{x=1,y=2} 1', 'b{} 1', 'c{} 3'])
  assert.deepEqual(told.lost, { duplicate_series: 1 })
  const { added } = await take('c 3\na{y="2",x="1"} 1\nb{pod="q"} 2\n')
  assert.deepEqual(told.lines(), ['a{x=1,y=2} 1', 'b{} 2', 'c{} 3'])
  assert.equal(added, 0)
  await take('c 3\n')
  assert.deepEqual(told.lines(), ['a{x=1,y=2} ended', 'b{} ended', 'c{} 3'])
})

test('of a series that a large family tells twice the first counts, wherever the other stands', async () => {
  const { told, take } = open()
  const family = lines(1200, i => `a{i="${i}"} ${i}\n`)
  await take(family)
  assert.equal(told.take().length, 1200)
  const { kept } = await take(`${family}a{i="3"} 7\n`)
  assert.equal(kept, 1201)
  assert.deepEqual(
    told.lines().filter(line => line.startsWith('a{i=3}')),
    ['a{i=3} 3'],
  )
  assert.deepEqual(told.lost, { duplicate_series: 1 })
  await take(`${family}a{i="3"} 8\n`)
  assert.deepEqual(told.lost, { duplicate_series: 2 })
  told.take()
  // The first one goes, the other stays.
  await take(`${family.replace('a{i="3"} 3\n', '')}a{i="3"} 9\n`)
  assert.deepEqual(
    told.lines().filter(line => line.startsWith('a{i=3}')),
    ['a{i=3} 9'],
  )
  assert.deepEqual(told.lost, { duplicate_series: 2 })
})

test('a histogram that is told in several places is one', async () => {
  const { told, take } = open()
  const page = (n: number) => `# TYPE a histogram
# TYPE a_b histogram
a_bucket{le="1"} ${n}
a_bucket{le="+Inf"} ${n}
a_count ${n}
a_b_bucket{le="+Inf"} 3
a_b_count 3
a_b_sum 4
a_sum ${5 * n}
`
  await take(page(1))
  await take(page(2))
  assert.deepEqual(told.lines(), ['a_b{} 3 4 [3]', 'a_b{} 3 4 [3]', 'a{} 1 5 [1,0]', 'a{} 2 10 [2,0]'])
  assert.deepEqual(told.lost, {})
  // The same samples, one behind the other and apart.
  const [head, ...samples] = page(3).split('# TYPE a_b histogram\n')
  const [a1, a2, a3, , , , a4] = samples.join('').split('\n')
  await take(`${head}${[a1, a2, a3, a4].join('\n')}\n`)
  await take(`${head}${[a1, a2, a3, 'x 77', a4].join('\n')}\n`)
  await take(`${head}${[a1, a2, a3, a4].join('\n')}\nx 78\n`)
  assert.deepEqual(
    told.lines().filter(line => line.startsWith('a{')),
    Array(3).fill('a{} 3 15 [3,0]'),
  )
  await take(page(2).replace('a_sum 10\n', ''))
  told.lines()
  await take(page(2).replace('a_sum 10\n', ''))
  assert.deepEqual(told.lines(), ['a_b{} 3 4 [3]', 'a{} 2 undefined [2,0]'])
})

test('a large histogram is made anew in parts, of which each has whole points', async () => {
  const { told, take, series } = open()
  const point = (i: number, n: number) => `a_bucket{i="${i}",le="1"} ${n}
a_bucket{i="${i}",le="2"} ${n}
a_bucket{i="${i}",le="+Inf"} ${n}
a_count{i="${i}"} ${n}
a_sum{i="${i}"} 1
`
  await take(`# TYPE a histogram\n${lines(1000, i => point(i, i))}`)
  assert.equal(told.take().length, 1000)
  const { added } = await take(`# TYPE a histogram\n${lines(1001, i => point(i, i))}`)
  assert.equal(added, 5)
  assert.equal(series.wholeReads, 2)
  const points = told.take()
  assert.equal(points.length, 1001)
  assert.deepEqual(
    points.map(({ fields }) => Number(fields.count ?? 0)),
    Array.from({ length: 1001 }, (_, i) => i),
  )
  assert.deepEqual(told.lost, {})
})

test('exemplars come with a part that had none before', async () => {
  const { told, take } = open()
  const page = (n: number, exemplar: string) => `# TYPE a counter\na_total ${n}${exemplar}\nb 1\n# EOF\n`
  const exemplars = () =>
    told.take().map(({ metric, fields }) => [metric, (fields.exemplars as [])?.length ?? 0])
  for (const exemplar of ['', ' # {trace_id="x"} 5', ' # {trace_id="y"} 6', '']) {
    await take(page(1, exemplar), openMetrics)
    assert.deepEqual(exemplars(), [
      ['a_total', exemplar === '' ? 0 : 1],
      ['b', 0],
    ])
  }
})

test('a histogram that contradicts itself is counted once each time, and costs no other', async () => {
  const { told, take } = open()
  const page = (n: number) =>
    `# TYPE a histogram\n${['1', '2', '3'].map(bound => `a_bucket{b="${bound}",le="${bound}"} 5\na_bucket{b="${bound}",le="+Inf"} ${bound === '3' ? 5 : n}\na_count{b="${bound}"} 5\n`).join('')}`
  await take(page(5))
  assert.equal(told.take().length, 3)
  for (const times of [1, 2]) {
    await take(page(4))
    assert.deepEqual(told.lines(), ['a{b=3} 5 undefined [5,0]'])
    assert.deepEqual(told.lost, { inconsistent_histogram: 2 * times })
  }
  assert.equal(told.account.collected, 3 + 2 * 3)
})

test('series with times of their own do not end, and others do', async () => {
  const page = 'a{x="1"} 1 1700000000000\na{x="2"} 2\nb 1\n'
  const { told, take, series } = open()
  await take(page)
  assert.deepEqual(
    told.take().map(({ timeMs }) => timeMs),
    [1.7e12, timeUs / 1000, timeUs / 1000],
  )
  await take('b 1\n')
  assert.deepEqual(told.lines(), ['a{x=2} ended', 'b{} 1'])
  await take(page)
  told.take()
  await series.end(timeUs)
  await series.end(timeUs)
  assert.deepEqual(told.lines(), ['a{x=2} ended', 'b{} ended'])
  for (const own of [{ trackTimestampsStaleness: true }, { honorTimestamps: false }]) {
    const tracked = open(own)
    await tracked.take(page)
    tracked.told.take()
    await tracked.take('b 1\n')
    assert.deepEqual(tracked.told.lines(), ['a{x=1} ended', 'a{x=2} ended', 'b{} 1'])
  }
})

test('a page that is refused changes nothing, and what ended comes back', async () => {
  const { told, take, series } = open({ limits: { ...targetOf().job.limits, samples: 2 } })
  await take('a 1\nb 2\n')
  told.take()
  await assert.rejects(take('a 1\nb 2\nc 3\n'), /more than 2 samples, .*sample_limit/)
  await assert.rejects(take('a 1\nb x\n'), /^PageError: line 2: no number after the name: b x$/)
  await assert.rejects(take('a 1\n', 'application/vnd.google.protobuf'), PageError)
  assert.deepEqual(told.lines(), [])
  await series.end(timeUs)
  assert.deepEqual(told.lines(), ['a{} ended', 'b{} ended'])
  await take('b 3\nc 4\n')
  assert.deepEqual(told.lines(), ['b{} 3', 'c{} 4'])
})

test('other settings hold from the next page on: what they leave ends no series, what they drop does', async () => {
  const { told, take, series, target } = open()
  await take('a 1\nb 2\n')
  told.take()
  const metricRelabel = [rule({ source_labels: ['__name__'], regex: 'b', action: 'drop' })]
  series.change({ ...target, job: { ...target.job, metricRelabel } })
  await take('a 10\nb 20\n')
  assert.deepEqual(told.lines(), ['a{} 10', 'b{} ended'])
  series.change(target)
  await series.end(timeUs)
  assert.deepEqual(told.lines(), ['a{} ended'])
  await take('a 100\nb 200\n')
  assert.deepEqual(told.lines(), ['a{} 100', 'b{} 200'])
})

test('settings that change while a page is read are those of the next one', async () => {
  const { told, take, series, target } = open()
  const page = lines(30_000, i => `a{i="${i}"} 1\n`)
  const externalLabels = new Map([['x', 'y']])
  const first = take(page)
  await new Promise(resolve => setImmediate(resolve))
  series.change({ ...target, job: { ...target.job, externalLabels } })
  assert.equal((await first).kept, 30_000)
  assert.equal(told.take()[0]!.attributes.x, undefined)
  await take(page)
  const points = told.take()
  assert.equal(points.filter(({ ended, attributes }) => attributes.x === 'y' && !ended).length, 30_000)
  assert.equal(points.filter(({ ended, attributes }) => attributes.x === undefined && ended).length, 30_000)
  const second = take(page)
  await new Promise(resolve => setImmediate(resolve))
  series.change(target)
  assert.equal((await second).kept, 30_000)
  assert.equal(told.take().filter(({ attributes }) => attributes.x === 'y').length, 30_000)
})

test('a page that is being read is given up when its reader stops', async () => {
  const { told, series } = open()
  const stop = new AbortController()
  const under = series.take(pageOf(lines(60_000, i => `a{i="${i}"} 1\n`)), timeUs, stop.signal)
  stop.abort()
  await assert.rejects(under, { name: 'AbortError' })
  await series.end(timeUs)
  assert.deepEqual(told.lines(), [])
})

test('what is done to metrics may change at any time', async () => {
  const { told, take, series } = open()
  const page = '# TYPE a histogram\na_bucket{le="1"} 1\na_bucket{le="+Inf"} 1\na_count 1\nb 1\nb{c="d"} 2\n'
  const want = ['a{} 1 undefined [1,0]', 'b{c=d} 2', 'b{} 1']
  for (const process of [undefined, passThrough, { ...passThrough }, undefined]) {
    told.accept(process)
    await take(page)
    assert.deepEqual(told.lines(), want)
  }
  for (let i = 0; i < 130; i++) await take(page)
  assert.equal(told.take().length, 130 * 3)
  assert.deepEqual([series.wholeReads, told.contradictions, told.lost], [1, 0, {}])
})

test('a fast read that says something else than a whole one is not trusted again', async () => {
  for (const other of ['a 2\nb 1\n', 'a 1\nc 1\n', 'a 1\n', 'a 1\nb 1\nc 1\n', 'a 1\nb x\n']) {
    const { told, take, series } = open()
    for (let i = 0; i < 64; i++) await take('a 1\nb 1\n')
    told.take()
    // As if the reader had a fault: it is shown something else when it looks again.
    let looks = 0
    const page = {
      contentType: pageOf('').contentType,
      get body() {
        return Buffer.from(looks++ === 0 ? 'a 1\nb 1\n' : other)
      },
    }
    const taken = await series.take(page, timeUs).catch((error: unknown) => error)
    assert.equal(told.contradictions, 1, other)
    assert.equal(taken instanceof PageError, other.endsWith('x\n'))
    const { wholeReads } = series
    await take('a 1\nb 1\n')
    assert.equal(series.wholeReads, wholeReads + 1)
  }
})

test('a guess at the format, and lines that are left out, are told for as long as they are there', async () => {
  const { take } = open({ lenient: true })
  for (const n of [1, 2, 3])
    assert.equal(
      (await take(`a ${n}\nb{ 2\n`)).warning,
      '1 line skipped, first line 2: a label has no name: b{ 2',
    )
  assert.equal((await take('a 1\n')).warning, '')
  for (const n of [1, 2])
    assert.equal(
      (await take(`a ${n}\nb{ 2\n`, 'text/html')).warning,
      `Content-Type "text/html" is not a metrics format; parsed as text format 0.0.4; \
1 line skipped, first line 2: a label has no name: b{ 2`,
    )
})

test('a page tells what its target is, and what others are', async () => {
  const { told, take, series } = open({ honorLabels: true })
  const others = lines(2000, i => `target_info{instance="i${i}",os="o${i}"} 1\n`)
  const page = (os: string) =>
    `target_info{os="${os}"} 1\na 1\n${others}${lines(2000, i => `b{instance="i${i}"} 1\n`)}`
  await take(page('linux'))
  const points = told.take()
  assert.equal(points.length, 2001)
  assert.equal(points.find(({ metric }) => metric === 'a')!.resource.os, 'linux')
  for (const { resource } of points.filter(({ metric }) => metric === 'b'))
    assert.equal(resource.os, `o${String(resource['service.instance.id']).slice(1)}`)
  const { resource } = series
  await take(page('linux'))
  assert.equal(series.resource, resource)
  await take(page('plan9'))
  assert.equal(
    told.take().filter(({ metric, resource }) => metric === 'a' && resource.os === 'plan9').length,
    1,
  )
  assert.ok(told.take().every(({ ended }) => !ended))
})

test('a page whose series find no memory fails the scrape, and others go on', async () => {
  const room = new PageRoom(200_000)
  const told = new ReceivedSeries()
  const good = new TargetSeries(told.sink, targetOf(), room)
  const bad = new TargetSeries(told.sink, targetOf(), room)
  const small = pageOf(lines(100, i => `a{b="${i}"} 1\n`))
  await good.take(small, timeUs)
  const held = room.bytes
  assert.ok(held > 5000, `${held}`)
  for (const large of [
    lines(1000, i => `m${i} ${i}\n`),
    lines(100_000, () => 'a 1\n'),
    lines(1000, i => `# TYPE a${i} gauge\n`).repeat(10),
  ])
    await assert.rejects(bad.take(pageOf(large), timeUs), /no memory left for its series.*limits\.memory/)
  assert.equal(room.bytes, held, 'what failed holds nothing')
  await good.take(pageOf(lines(100, i => `a{b="${i}"} 2\n`)), timeUs)
  assert.equal(room.bytes, held)
  good.close()
  bad.close()
  assert.equal(room.bytes, 0)
})

test('where memory is short metrics that were ready come whole, and say the same', async () => {
  const room = new PageRoom()
  const told = new ReceivedSeries()
  const series = new TargetSeries(told.sink, targetOf(), room)
  const page = (value: number) => pageOf(lines(50, i => `m${i}{b="c"} ${value}\n`))
  await series.take(page(1), timeUs)
  told.take()
  const held = room.bytes
  assert.ok(room.shed(1) > held / 4)
  const after = room.bytes
  assert.ok(after < held)
  await series.take(page(2), timeUs)
  const points = told.take()
  assert.equal(points.length, 50)
  assert.ok(points.every(({ value }) => value === 2))
  assert.equal(series.wholeReads, 1)
  assert.equal(room.bytes, after, 'they are not made anew at once')
})
