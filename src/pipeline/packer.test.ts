import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Batch, plainBatch } from '../foundation/model/batch.ts'
import { Packer } from './packer.ts'

const batchOf = (items: number) => plainBatch('logs', items, new Uint8Array(10 * items))
const packed = (batch: Batch): Batch => ({ ...batch, body: batch.body.subarray(0, 1), encoding: 'gzip' })

/** A packer, what it handed on, and the answers that its compressor waits for. */
function open() {
  const out: Batch[] = []
  const waiting: { batch: Batch; resolve: (batch: Batch) => void; reject: (error: Error) => void }[] = []
  const packer = new Packer(batch => out.push(batch))
  const pack = (batch: Batch) =>
    new Promise<Batch>((resolve, reject) => waiting.push({ batch, resolve, reject }))
  const shown = () => out.map(({ items, encoding }) => `${items} ${encoding}`)
  return { packer, pack, waiting, shown }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

test('batches stay in order, those included that are not compressed', async () => {
  const { packer, pack, waiting, shown } = open()
  packer.add(batchOf(1), undefined)
  assert.deepEqual(shown(), ['1 identity'])
  packer.add(batchOf(2), pack)
  packer.add(batchOf(3), undefined)
  packer.add(batchOf(4), pack)
  assert.deepEqual([packer.items, packer.bytes], [9, 90])
  await turn()
  assert.equal(waiting.length, 1)
  waiting[0]!.resolve(packed(waiting[0]!.batch))
  await turn()
  assert.deepEqual([shown(), packer.items], [['1 identity', '2 gzip', '3 identity'], 4])
  waiting[1]!.reject(new Error('no memory'))
  await packer.done
  assert.deepEqual(shown().at(-1), '4 identity')
  assert.deepEqual([packer.items, packer.bytes], [0, 0])
})

test('what a blocked compressor holds can be handed on as it is, once', async () => {
  const { packer, pack, waiting, shown } = open()
  for (const items of [1, 2, 3]) packer.add(batchOf(items), pack)
  await turn()
  packer.handOn()
  const all = ['1 identity', '2 identity', '3 identity']
  assert.deepEqual([shown(), packer.items, packer.bytes], [all, 0, 0])
  waiting[0]!.resolve(packed(waiting[0]!.batch))
  await packer.done
  assert.deepEqual([shown(), waiting.length], [all, 1])
})
