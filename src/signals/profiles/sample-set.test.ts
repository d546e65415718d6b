import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frame } from '../../foundation/model/profile.ts'
import { SampleSet } from './sample-set.ts'

const leaf: Frame = { name: 'leaf', file: '', line: 0 }
const main: Frame = { name: 'main', file: '', line: 0 }
const link = { traceId: new Uint8Array(16).fill(1), spanId: new Uint8Array(8).fill(2) }

test('the same frames in the same thread for the same span are one sample', () => {
  const samples = new SampleSet()
  samples.add([leaf, main], 'worker', undefined, 3)
  samples.add([leaf, main], 'worker', undefined, 4)
  samples.add([leaf, main], 'main', undefined, 5)
  samples.add([main], 'worker', undefined, 6)
  samples.add([leaf, main], 'worker', link, 7)
  const list = samples.list()
  assert.deepEqual(
    list.map(({ frames, value, attributes, link }) => [
      frames.map(({ name }) => name).join(';'),
      value,
      attributes.get('thread.name'),
      link !== undefined,
    ]),
    [
      ['leaf;main', 7, 'worker', false],
      ['leaf;main', 5, 'main', false],
      ['main', 6, 'worker', false],
      ['leaf;main', 7, 'worker', true],
    ],
  )
  assert.equal(list[0]!.attributes, list[2]!.attributes)
})

test('no frames at all and no name of a thread are a sample as well', () => {
  const samples = new SampleSet()
  samples.add([], '', undefined, 1)
  assert.equal(samples.list()[0]!.attributes.size, 0)
})
