// The cases of test/fixtures/mapping. UPDATE_GOLDEN=1 writes anew what becomes of their pages.

import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  linesOf,
  type MappingCase,
  readCases,
  relabelled,
  scrapeUs,
  writtenCase,
} from '../../../../../test/helpers/mapping-cases.ts'
import { assertSamePlaces } from '../../../../../test/helpers/mapping-places.ts'
import { readPage } from '../page-reader.ts'
import { sampleKey } from '../sample-key.ts'
import { type MappedSeries, mapFamily, staleMetrics } from './map-family.ts'
import type { FamilyMetadata } from './mapped-family.ts'

const folder = join(import.meta.dirname, '../../../../../test/fixtures/mapping')

interface Input {
  readonly family: FamilyMetadata
  readonly series: MappedSeries[]
}

/** Families of a page with their series. */
function inputsOf({ page, format, relabel }: MappingCase): Input[] {
  const body = Buffer.from(page)
  const read = readPage(body, format, { lenient: false, maxSamples: 0, maxLineBytes: 2 ** 20 })
  if ('reason' in read) throw new Error(`line ${read.line}: ${read.reason}: ${read.excerpt}`)
  return read.families.map(family => {
    const series: MappedSeries[] = []
    for (let i = family.from; i < family.to; i++) {
      const { name, labels } = sampleKey(body, read.keyFrom[i]!, read.keyTo[i]!)!
      const time = read.timesUs[i]!
      const timeUs = Number.isNaN(time) ? scrapeUs : time
      const exemplar = read.exemplars.get(i)
      series.push(relabelled({ name, labels, value: read.values[i]!, timeUs, exemplar }, relabel))
    }
    return { family, series }
  })
}

for (const file of readdirSync(folder)) {
  const path = join(folder, file)
  const cases = readCases(path)
  test(`${cases.length} cases of ${file}`, () => {
    const written: string[] = []
    for (const one of cases) {
      const metrics = inputsOf(one)
        .flatMap(input => linesOf(mapFamily({ ...input, numbers: 'values' })))
        .join('\n')
      written.push(writtenCase(one, metrics))
      if (process.env.UPDATE_GOLDEN !== '1') assert.equal(metrics, one.metrics, one.title)
    }
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(path, `${written.join('').trimEnd()}\n`)
  })

  test(`places in ${file} lead to what values lead to`, () => {
    for (const one of cases)
      for (const { family, series } of inputsOf(one)) {
        const plain = series.map(({ exemplar, ...rest }) => rest)
        const values = mapFamily({ family, series: plain, numbers: 'values' })
        assertSamePlaces(family, plain, values, one.title)
      }
  })

  test(`what was made in ${file} ends`, () => {
    for (const one of cases)
      for (const input of inputsOf(one)) {
        const made = mapFamily({ ...input, numbers: 'places' }).metrics
        const ended = staleMetrics(input, 5)
        const all = ended.flatMap(({ metric: { name, points } }) =>
          points.map(({ attributes, timeUs, noValue }) => {
            assert.deepEqual([noValue, timeUs], [true, 5], one.title)
            return `${name} ${JSON.stringify(attributes.toObject())}`
          }),
        )
        const want = made.flatMap(({ metric: { name, points } }) =>
          points.map(({ attributes }) => `${name} ${JSON.stringify(attributes.toObject())}`),
        )
        assert.deepEqual(all.sort(), want.sort(), one.title)
      }
  })
}
