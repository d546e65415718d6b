import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Batch, plainBatch } from '../foundation/model/batch.ts'
import { Compressor } from './compressor.ts'

const batchOf = (items: number) => plainBatch('logs', items, new Uint8Array(10 * items))
const compressed = (batch: Batch): Batch => ({ ...batch, body: batch.body.subarray(0, 1), encoding: 'gzip' })

/** A compressor, what it handed on, and the answers that its compressor waits for. */
function open() {
  const out: Batch[] = []
  const waiting: { batch: Batch; resolve: (batch: Batch) => void; reject: (error: Error) => void }[] = []
  const compressor = new Compressor(batch => out.push(batch))
  const compress = (batch: Batch) =>
    new Promise<Batch>((resolve, reject) => waiting.push({ batch, resolve, reject }))
  const shown = () => out.map(({ items, encoding }) => `${items} ${encoding}`)
  return { compressor, compress, waiting, shown }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

test('batches stay in order, those included that are not compressed', async () => {
  const { compressor, compress, waiting, shown } = open()
  compressor.add(batchOf(1), undefined)
  assert.deepEqual(shown(), ['1 identity'])
  compressor.add(batchOf(2), compress)
  compressor.add(batchOf(3), undefined)
  compressor.add(batchOf(4), compress)
  assert.deepEqual([compressor.items, compressor.bytes], [9, 90])
  await turn()
  assert.equal(waiting.length, 1)
  waiting[0]!.resolve(compressed(waiting[0]!.batch))
  await turn()
  assert.deepEqual([shown(), compressor.items], [['1 identity', '2 gzip', '3 identity'], 4])
  waiting[1]!.reject(new Error('no memory'))
  await compressor.done
  assert.deepEqual(shown().at(-1), '4 identity')
  assert.deepEqual([compressor.items, compressor.bytes], [0, 0])
})

test('what a blocked compressor holds can be handed on as it is, once', async () => {
  const { compressor, compress, waiting, shown } = open()
  for (const items of [1, 2, 3]) compressor.add(batchOf(items), compress)
  await turn()
  compressor.handOn()
  const all = ['1 identity', '2 identity', '3 identity']
  assert.deepEqual([shown(), compressor.items, compressor.bytes], [all, 0, 0])
  waiting[0]!.resolve(compressed(waiting[0]!.batch))
  await compressor.done
  assert.deepEqual([shown(), waiting.length], [all, 1])
})
