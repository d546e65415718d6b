import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { Profile } from 'pprof-format'
import {
  frame,
  groupOf,
  hostileNames,
  sampleOf,
  shopAndWorker,
  taken,
} from '../../../test/helpers/host-profile.ts'
import { soak } from '../../../test/helpers/soak.ts'
import type { ProfileFormat, TakenProfile } from '../../foundation/model/taken-profile.ts'
import type { FlameDocument } from '../../view/api/schemas.ts'
import { profileFile } from './profile-file.ts'

const asked = { kind: 'cpu', seconds: 2 } as const

async function fileOf(format: ProfileFormat, of: TakenProfile = shopAndWorker()): Promise<string> {
  return (await profileFile(of, asked, format)).body.toString()
}

/** Elements of an XML document with their own text, read by a parser that is not ours. */
function elements(xml: string): { tag: string; attributes: Record<string, string>; text: string }[] {
  const program = `
import json, sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
print(json.dumps([{"tag": e.tag.split("}")[1], "attributes": e.attrib, "text": e.text or ""} for e in root.iter()]))`
  const { status, stdout, stderr } = spawnSync('python3', ['-c', program], {
    input: xml,
    maxBuffer: 64 << 20,
  })
  assert.equal(status, 0, stderr.toString())
  return JSON.parse(stdout.toString())
}

test('folded stacks are sorted lines with the service outermost', async () => {
  const lines = (await fileOf('folded')).trimEnd().split('\n')
  assert.deepEqual(lines.slice(0, 3), [
    'shop;main;serve 200000000',
    'shop;main;serve;parse(char const*) 600000000',
    'shop;main;serve;tcp_sendmsg 100000000',
  ])
  assert.deepEqual(lines, lines.toSorted())
  assert.ok(lines.includes('worker;main;[stripped] 50000000'))
})

test('no name makes a frame or a line of folded stacks of its own', async () => {
  const lines = (await fileOf('folded')).trimEnd().split('\n')
  assert.equal(lines.length, 5)
  const hostile = lines.find(line => line.includes('script'))!
  assert.equal(hostile.split(';').length, 2 + hostileNames.length)
  assert.ok(hostile.includes('a,b,c 12\ufffdd 13'))
  assert.ok(hostile.endsWith(' 50000000'))
})

test('folded stacks that are too long are merged into one line, and nothing of the total is lost', async () => {
  const { foldedParts } = await import('./folded.ts')
  const { flameGraph } = await import('./flame-graph.ts')
  const { tree } = await flameGraph(shopAndWorker(), asked)
  const text = [...foldedParts(tree, 120)].join('')
  assert.ok(text.length < 160)
  assert.match(text, /^\[other\] 200000000$/m)
  const sum = text
    .trimEnd()
    .split('\n')
    .reduce((all, line) => all + Number(line.slice(line.lastIndexOf(' '))), 0)
  assert.equal(sum, tree.total[0])
})

test('a drawing is XML whose text says what was measured, and no name becomes markup', async () => {
  const all = elements(await fileOf('svg'))
  const texts = all.filter(({ tag }) => tag === 'text').map(({ text }) => text)
  assert.ok(texts.includes('all processes'))
  assert.ok(
    texts.includes('CPU time · 2.0 s · 100 Hz · 100 samples · 1.00 s total · 5.0% unnamed · host 25.0% busy'),
  )
  assert.ok(texts.some(text => text === 'native 80.0%'))
  assert.ok(texts.some(text => text === 'kernel 10.0%'))
  const titles = all.filter(({ tag }) => tag === 'title').map(({ text }) => text)
  assert.ok(titles.includes('parse(char const*)\n/usr/lib/libparse.so\n60.0%, 600 ms, self 60.0%'))
  assert.ok(titles.includes('serve\n/usr/bin/program\n90.0%, 900 ms, self 20.0%'))
  assert.ok(titles.some(title => title.startsWith('</svg><script>alert(1)</script>\n')))
  assert.deepEqual([...new Set(all.map(({ tag }) => tag))].toSorted(), [
    'g',
    'rect',
    'script',
    'style',
    'svg',
    'text',
    'title',
  ])
  assert.equal(all.filter(({ tag }) => tag === 'script').length, 1)
  for (const { attributes } of all)
    for (const name of Object.keys(attributes)) assert.doesNotMatch(name, /^on|href/)
})

test('the script of a drawing is a program, and holds nothing that XML would read', async () => {
  const { text } = elements(await fileOf('svg')).find(({ tag }) => tag === 'script')!
  assert.doesNotMatch(text, /[<&]|]]>/)
  assert.ok(new Function(text))
})

test('frames of a drawing lie inside of the one that called them', async () => {
  const boxes = elements(await fileOf('svg')).filter(
    ({ tag, attributes }) => tag === 'rect' && attributes.height === '16',
  )
  const box = boxes.map(({ attributes: { x, y, width } }) => ({
    x: Number(x),
    y: Number(y),
    end: Number(x) + Number(width),
  }))
  for (const { x, y, end } of box.slice(1))
    assert.ok(
      box.some(above => above.y === y - 17 && above.x <= x + 0.02 && above.end >= end - 0.02),
      `${x} ${y}`,
    )
})

test('frames beside each other meet and do not overlap, so that a zoom shows none of a neighbour', async () => {
  const names = Array.from({ length: 97 }, (_, i) => frame(`f${i}`, 'native'))
  const group = groupOf(
    'shop',
    [1],
    names.map((each, i) => sampleOf(1 + (i % 7) / 3, [each])),
  )
  const edges = elements(await fileOf('svg', taken([group])))
    .filter(({ tag, attributes }) => tag === 'rect' && attributes.height === '16')
    .map(({ attributes: { x, y, width } }) => ({
      x: Number(x),
      y: Number(y),
      end: Number(x) + Number(width),
    }))
  const row = edges.filter(({ y }) => y === edges.at(-1)!.y)
  assert.equal(row.length, names.length)
  for (const [i, { end }] of row.slice(0, -1).entries())
    assert.ok(Math.abs(end - row[i + 1]!.x) < 0.001, `${end} ${row[i + 1]!.x}`) // what the script allows for
})

test('a drawing of a very large or very deep profile stays below 500 KB and says what it left out', async () => {
  const frames = Array.from({ length: 20_000 }, (_, i) => frame(`function_with_a_long_name_${i}`, 'native'))
  const wide = groupOf(
    'wide',
    [1],
    Array.from({ length: soak ? 50_000 : 5_000 }, (_, i) =>
      sampleOf(
        i % 20 === 0 ? 100 : 1,
        [0, 1, 2, 3, 4].map(n => frames[(i * 31 + n * n * 997 * (i % 101)) % 20_000]!),
      ),
    ),
  )
  const deep = groupOf(
    'deep',
    [2],
    Array.from({ length: 20 }, (_, i) => sampleOf(300, frames.slice(i * 1000, (i + 1) * 1000))),
  )
  for (const groups of [[wide], [deep], [wide, deep]]) {
    const svg = await fileOf('svg', taken(groups))
    assert.ok(Buffer.byteLength(svg) < 500_000, String(Buffer.byteLength(svg)))
    const all = elements(svg)
    assert.ok(all.length > 200, String(all.length))
    assert.match(all.findLast(({ tag }) => tag === 'text')!.text, /frames too narrow to draw/)
  }
})

test('JSON is the tree in columns', async () => {
  const document = JSON.parse(await fileOf('json')) as FlameDocument
  const { strings, nodes, types, processes } = document
  assert.equal(document.title, 'all processes')
  assert.deepEqual(
    [document.total, document.unnamed, document.samples, document.sample_rate],
    [1e9, 5e7, 100, 100],
  )
  assert.deepEqual(
    processes.map(({ service, value }) => [service, value]),
    [
      ['shop', 9e8],
      ['worker', 1e8],
    ],
  )
  const lengths = Object.values(nodes).map(column => column.length)
  assert.equal(new Set(lengths).size, 1)
  const parse = strings.indexOf('parse(char const*)')
  const node = nodes.name.indexOf(parse)
  assert.deepEqual([nodes.self[node], nodes.total[node], types[nodes.type[node]!]], [6e8, 6e8, 'native'])
  assert.equal(strings[nodes.name[nodes.parent[node]!]!], 'serve')
})

test('pprof has all samples, with the service of each', async () => {
  const { body } = await profileFile(shopAndWorker(), asked, 'pprof')
  const profile = Profile.decode(gunzipSync(body))
  const text = (id: number | bigint) => profile.stringTable.strings[Number(id)]
  assert.equal(profile.sample.length, 5)
  const services = profile.sample.map(({ label }) =>
    text(label.find(({ key }) => text(key) === 'service.name')!.str),
  )
  assert.deepEqual(services, ['shop', 'shop', 'shop', 'worker', 'worker'])
  assert.ok(profile.comment.map(text).includes('host 25.0% busy'))
})

test('the period of a file for pprof is the mean of its groups', async () => {
  const slow = groupOf('slow', [1], [sampleOf(5, [frame('main')])])
  const mixed = taken([
    { ...slow, profile: { ...slow.profile, period: 50_000_000 } },
    groupOf('fast', [2], [sampleOf(9, [frame('main')])]),
  ])
  const { body } = await profileFile(mixed, asked, 'pprof')
  assert.equal(Number(Profile.decode(gunzipSync(body)).period), 14_000_000)
})

test('where nothing was sampled every format is valid and empty', async () => {
  const nothing = taken([])
  assert.equal(await fileOf('folded', nothing), '')
  const document = JSON.parse(await fileOf('json', nothing)) as FlameDocument
  assert.deepEqual([document.total, document.samples, document.nodes.total], [0, 0, [0]])
  assert.ok(elements(await fileOf('svg', nothing)).some(({ text }) => text === 'No samples.'))
  const { body } = await profileFile(nothing, asked, 'pprof')
  assert.equal(Profile.decode(gunzipSync(body)).sample.length, 0)
})
