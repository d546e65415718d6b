// owns: host
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { compileBpf, withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { Lab } from '../../test/helpers/lab.ts'
import { nativeOrThrow } from '../../test/helpers/native.ts'
import { BpfObject } from './bpf-object.ts'
import { countedMaps, loadedMaps, loadedPrograms, refusedPrograms } from './loaded.ts'

const skip = withoutBpf
const entriesOf = (map: string) => countedMaps().find(({ name }) => name === map)?.entries

test('programs and maps are known from the load to the end of their object', { skip }, () => {
  const { native, object } = new Lab()
  try {
    assert.deepEqual(new Set(loadedPrograms().map(each => each.object)), new Set(['lab']))
    assert.deepEqual(loadedPrograms('other'), [])
    const burst = () => loadedPrograms('lab').find(({ name }) => name === 'svc_burst')!
    assert.deepEqual([burst().attached, burst().links], [false, 0])
    object.attach('svc_burst')
    assert.deepEqual([burst().attached, burst().links], [true, 1])
    object.detach('svc_burst')
    assert.deepEqual([burst().attached, burst().links], [false, 0])
    const maps = loadedMaps()
    assert.equal(maps.length, native.objectMaps(object.handle).length)
    assert.equal(new Set(maps.map(({ id }) => id)).size, maps.length)
  } finally {
    object.close()
  }
  assert.deepEqual([loadedPrograms(), loadedMaps()], [[], []])
})

test('a map that two objects share is one map', { skip }, () => {
  const first = new Lab()
  try {
    const before = loadedMaps()
    const share = first.object.map('table')
    const bytes = compileBpf('lab')
    const second = BpfObject.load(first.native, bytes, {
      name: 'second',
      prepare: handle => first.native.objectReuseMap(handle, 'table', share),
    })
    const both = loadedMaps()
    assert.equal(both.length, 2 * before.length - 1)
    assert.equal(both.filter(({ name }) => name === 'table').length, 1)
    first.close()
    assert.deepEqual(
      loadedMaps().filter(({ name }) => name === 'table'),
      [{ ...both.find(({ name }) => name === 'table')!, object: 'second' }],
    )
    second.close()
  } finally {
    first.close()
  }
})

test('what the kernel refused is known with its reason, and is not among what is loaded', { skip }, () => {
  const optional = ['svc_wild', 'svc_absent']
  const object = BpfObject.load(nativeOrThrow(), compileBpf('refused'), { name: 'refused', optional })
  assert.deepEqual(
    loadedPrograms().map(({ name }) => name),
    ['svc_good'],
  )
  assert.deepEqual(
    refusedPrograms('refused').map(({ name, refused }) => [name, refused !== '']),
    [
      ['svc_wild', true],
      ['svc_absent', true],
    ],
  )
  object.close()
})

test('a large map is counted in turns, once for a while, and holds nobody up', { skip }, async () => {
  const many = 300_000
  const native = nativeOrThrow()
  const object = BpfObject.load(native, compileBpf('lab'), {
    name: 'lab',
    prepare: handle => native.objectSetMaxEntries(handle, 'table', many),
  })
  try {
    const table = object.map('table')
    const key = Buffer.alloc(table.keySize)
    const value = Buffer.alloc(table.slotSize)
    for (let i = 0; i < many; i++) {
      key.writeUInt32LE(i)
      native.mapUpdate(table, key, value, 0)
    }
    assert.ok(entriesOf('table')! < many, 'the rest of it comes later')
    for (let tries = 0; entriesOf('table') !== many && tries < 1000; tries++) await sleep(20)
    assert.equal(entriesOf('table'), many)
    native.mapDelete(table, key)
    assert.equal(entriesOf('table'), many, 'it was counted a moment ago')
  } finally {
    object.close()
  }
})

test('a map that is closed while it is counted ends the count, and others are counted all the same', {
  skip,
}, async () => {
  const many = 300_000
  const native = nativeOrThrow()
  const large = BpfObject.load(native, compileBpf('lab'), {
    name: 'large',
    prepare: handle => native.objectSetMaxEntries(handle, 'table', many),
  })
  const table = large.map('table')
  const key = Buffer.alloc(table.keySize)
  for (let i = 0; i < many; i++) {
    key.writeUInt32LE(i)
    native.mapUpdate(table, key, Buffer.alloc(table.slotSize), 0)
  }
  countedMaps()
  const { object } = new Lab()
  try {
    const small = object.map('table')
    native.mapUpdate(small, Buffer.alloc(small.keySize), Buffer.alloc(small.slotSize), 0)
    countedMaps()
    large.close()
    for (let tries = 0; entriesOf('table') !== 1 && tries < 500; tries++) await sleep(20)
    assert.equal(entriesOf('table'), 1)
  } finally {
    large.close()
    object.close()
  }
})
