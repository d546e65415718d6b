import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mutated, seeded, shapes } from '../../../../test/helpers/page-mutation.ts'
import { referencePage } from '../../../../test/helpers/reference-page.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import type { LineFault, Page, PageFormat } from './exposition.ts'
import { PageLayout } from './page-layout.ts'
import { PageReader, readPage } from './page-reader.ts'
import { sampleKey } from './sample-key.ts'

const pages = soak ? 1_000_000 : 10_000
const limits = { maxSamples: 0, maxLineBytes: 0 }

function plain(page: Page | LineFault, body: Buffer): unknown {
  if ('reason' in page) return page.line
  return {
    badLines: page.badLines,
    families: page.families,
    samples: Array.from({ length: page.samples }, (_, i) => {
      const key = sampleKey(body, page.keyFrom[i]!, page.keyTo[i]!)
      return {
        key: body.toString('latin1', page.keyFrom[i], page.keyTo[i]),
        ...key,
        value: page.values[i],
        timeUs: page.timesUs[i],
        exemplar: page.exemplars.get(i),
      }
    }),
  }
}

function shown(body: Buffer, format: PageFormat, seed: number): string {
  return `seed ${seed}, ${format}: ${JSON.stringify(body.toString('latin1'))}`
}

/** Whether what a layout read is what the page has. */
function checkLayout(old: Page, body: Buffer, want: Page | LineFault, at: string): boolean {
  const layout = new PageLayout(old)
  const values = new Float64Array(old.samples).fill(-7)
  const timesUs = new Float64Array(old.samples).fill(Number.NaN)
  if (!layout.read(body, values, timesUs)) return false
  assert.ok(!('reason' in want), `the layout takes what is refused: ${at}`)
  assert.deepEqual(values, want.values, at)
  assert.deepEqual(timesUs, want.timesUs, at)
  assert.deepEqual(layout.exemplars, want.exemplars, at)
  assert.deepEqual(old.families, want.families, at)
  for (let i = 0; i < want.samples; i++)
    assert.ok(layout.keyBytes(i).equals(body.subarray(want.keyFrom[i], want.keyTo[i])), at)
  return true
}

test('a page is read as a reference reader reads it, and as the layout of the page before it reads it', () => {
  let hits = 0
  let refused = 0
  for (let seed = 0; seed < pages; seed++) {
    const random = seeded(seed)
    const { format, body } = shapes[seed % shapes.length]!
    const lenient = random() < 0.3
    const before = random() < 0.6 ? body : mutated(body, random)
    const old = readPage(before, format, { lenient, ...limits })
    const after = mutated(before, random)
    const at = shown(after, format, seed)
    const page = readPage(after, format, { lenient, ...limits })
    assert.deepEqual(plain(page, after), referencePage(after, format, lenient), at)
    if ('reason' in page) refused++
    if (!('reason' in old) && checkLayout(old, after, page, at)) hits++
  }
  // Else the layouts were not tested.
  assert.ok(hits > pages / 5, `${hits} layouts held`)
  assert.ok(refused > pages / 10 && refused < pages / 1.5, `${refused} pages were refused`)
})

test('a page that is read in slices is the page', () => {
  for (let seed = 0; seed < 500; seed++) {
    const random = seeded(seed)
    const { format, body } = shapes[seed % shapes.length]!
    const after = mutated(body, random)
    const options = { lenient: seed % 2 === 0, ...limits }
    const whole = readPage(after, format, options)
    const reader = new PageReader(after, format, options)
    let part: Page | LineFault | undefined
    while (part === undefined) part = reader.read(1 + Math.floor(random() * 100))
    assert.deepEqual(part, whole)
    const old = readPage(body, format, options)
    if ('reason' in old) continue
    const layout = new PageLayout(old, 1)
    while (old.samples > 1 && !layout.layOut(old, 1 + Math.floor(random() * 3)));
    const values = new Float64Array(old.samples)
    const timesUs = new Float64Array(old.samples).fill(Number.NaN)
    const once = layout.read(after, values, timesUs)
    const other = new Float64Array(old.samples)
    layout.begin(after)
    let same: boolean | undefined
    while (same === undefined) same = layout.go(other, timesUs, 1 + Math.floor(random() * 4))
    assert.equal(same, once)
    if (once) assert.deepEqual(other, values)
  }
})
