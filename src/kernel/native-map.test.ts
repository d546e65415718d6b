// owns: host
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { Lab } from '../../test/helpers/lab.ts'
import { batchCursor, batchDone, type MapHandle } from './native.ts'

function withLab(body: (lab: Lab) => void): void {
  const lab = new Lab()
  try {
    body(lab)
  } finally {
    lab.close()
  }
}

const pair = (a: number, b: number) => new Uint8Array(Uint32Array.of(a, b).buffer)
const word = (a: number) => new Uint8Array(Uint32Array.of(a).buffer)

/** Reads a whole map of two-word keys in batches and returns number → value. */
function readAll(lab: Lab, map: MapHandle, room: number, take: boolean): Map<number, number> {
  const cursor = batchCursor(map)
  const keys = new Uint8Array(room * map.keySize)
  const values = new Uint8Array(room * map.slotSize)
  const found = new Map<number, number>()
  while (!batchDone(cursor)) {
    const count = lab.native.mapReadBatch(map, cursor, keys, values, take)
    const keyView = new DataView(keys.buffer)
    const valueView = new DataView(values.buffer)
    for (let i = 0; i < count; i++) {
      const key = keyView.getUint32(i * map.keySize, true)
      assert.ok(!found.has(key), `key ${key} came twice`)
      found.set(key, valueView.getUint32(i * map.slotSize, true))
    }
  }
  return found
}

test('single elements: write, read, only if absent, only if there, delete', { skip: withoutBpf }, () => {
  withLab(({ native, object }) => {
    const map = object.map('table')
    assert.deepEqual(
      { type: map.type, keySize: map.keySize, valueSize: map.valueSize, slotSize: map.slotSize },
      { type: 'hash', keySize: 8, valueSize: 8, slotSize: 8 },
    )
    const value = new Uint8Array(8)
    assert.equal(native.mapLookup(map, pair(1, 0), value), false)
    assert.throws(() => native.mapUpdate(map, pair(1, 0), pair(5, 0), 2), { code: 'ENOENT' })
    native.mapUpdate(map, pair(1, 0), pair(5, 6), 1)
    assert.equal(native.mapLookup(map, pair(1, 0), value), true)
    assert.deepEqual(value, pair(5, 6))
    assert.throws(() => native.mapUpdate(map, pair(1, 0), pair(7, 0), 1), { code: 'EEXIST' })
    assert.equal(native.mapDelete(map, pair(1, 0)), true)
    assert.equal(native.mapDelete(map, pair(1, 0)), false)
  })
})

test('keys can be walked one by one', { skip: withoutBpf }, () => {
  withLab(({ native, object }) => {
    const map = object.map('table')
    for (let i = 0; i < 20; i++) native.mapUpdate(map, pair(i, 0), pair(i, 0), 0)
    const seen = new Set<number>()
    let key: Uint8Array | undefined
    const next = new Uint8Array(8)
    while (native.mapNextKey(map, key, next)) {
      seen.add(new DataView(next.buffer).getUint32(0, true))
      key = next.slice()
    }
    assert.equal(seen.size, 20)
  })
})

test('batches read every element once, and take empties the map', { skip: withoutBpf }, () => {
  withLab(lab => {
    const map = lab.object.map('table')
    for (let i = 0; i < 4000; i++) lab.native.mapUpdate(map, pair(i, 0), pair(i * 3, 0), 0)
    const check = (found: Map<number, number>, size: number) => {
      assert.equal(found.size, size)
      for (const [key, value] of found) assert.equal(value, key * 3)
    }
    check(readAll(lab, map, 64, false), 4000)
    check(readAll(lab, map, 8192, false), 4000)
    check(readAll(lab, map, 512, true), 4000)
    check(readAll(lab, map, 64, false), 0)
  })
})

test('a full map says so', { skip: withoutBpf }, () => {
  withLab(({ native, object }) => {
    const map = object.map('table')
    for (let i = 0; i < map.maxEntries; i++) native.mapUpdate(map, pair(i, 0), pair(0, 0), 0)
    assert.throws(() => native.mapUpdate(map, pair(99_999, 0), pair(0, 0), 0), {
      code: 'E2BIG',
      message: "cannot write to map 'table': argument list too long",
    })
  })
})

test('values of per-CPU maps have a padded slot for each CPU', { skip: withoutBpf }, () => {
  withLab(lab => {
    const { native, object } = lab
    const map = object.map('spread')
    const cpus = native.numCpus()
    assert.equal(map.valueSize, 4)
    assert.equal(map.slotSize, 8 * cpus)
    for (let i = 0; i < 100; i++) {
      const slots = new Uint8Array(map.slotSize)
      for (let cpu = 0; cpu < cpus; cpu++) new DataView(slots.buffer).setUint32(cpu * 8, i + cpu, true)
      native.mapUpdate(map, word(i), slots, 0)
    }
    const slots = new Uint8Array(map.slotSize)
    assert.equal(native.mapLookup(map, word(42), slots), true)
    for (let cpu = 0; cpu < cpus; cpu++)
      assert.equal(new DataView(slots.buffer).getUint32(cpu * 8, true), 42 + cpu)
    const found = readAll(lab, map, 16, false)
    assert.equal(found.size, 100)
    for (const [key, value] of found) assert.equal(value, key)
  })
})

test('a program and the map that it counts in agree', { skip: withoutBpf }, () => {
  withLab(({ native, object }) => {
    const map = object.map('tally')
    object.attach('svc_burst')
    for (let i = 0; i < 25; i++) if (process.ppid < 0) throw new Error('getppid failed')
    object.detach('svc_burst')
    if (process.ppid < 0) throw new Error('getppid failed')
    const slots = new BigUint64Array(native.numCpus())
    assert.equal(native.mapLookup(map, word(0), new Uint8Array(slots.buffer)), true)
    assert.equal(
      slots.reduce((sum, count) => sum + count, 0n),
      25n,
    )
  })
})

test('array maps are read in batches, by key where the kernel has none for the type', {
  skip: withoutBpf,
}, () => {
  withLab(lab => {
    const found = readAll(lab, lab.object.map('tally'), 3, false)
    assert.deepEqual([...found.keys()].sort(), [0, 1, 2, 3])
  })
})

test('the walk by key, for kernels before 5.6, reads and takes the same', { skip: withoutBpf }, () => {
  withLab(({ native, object }) => {
    const map = object.map('table')
    for (let i = 0; i < 1000; i++) native.mapUpdate(map, pair(i, 0), pair(i, 0), 0)
    const count = (take: boolean) => {
      const cursor = batchCursor(map)
      cursor[0] = 2 // the phase that a kernel without batches leads to
      const keys = new Uint8Array(8 * 100)
      const values = new Uint8Array(8 * 100)
      const seen = new Set<number>()
      while (!batchDone(cursor)) {
        const got = native.mapReadBatch(map, cursor, keys, values, take)
        for (let i = 0; i < got; i++) seen.add(new DataView(keys.buffer).getUint32(i * 8, true))
      }
      return seen.size
    }
    assert.deepEqual([count(false), count(true), count(false)], [1000, 1000, 0])
  })
})

test('a map without keys cannot be listed, and too small buffers are refused', { skip: withoutBpf }, () => {
  withLab(({ native, object }) => {
    const queue = object.map('queue')
    assert.throws(() => native.mapReadBatch(queue, new Uint8Array(64), word(0), word(0), false), {
      code: 'ENOTSUP',
    })
    const table = object.map('table')
    assert.throws(() => native.mapLookup(table, word(1), new Uint8Array(8)), TypeError)
    assert.throws(() => native.mapLookup(table, pair(1, 0), new Uint8Array(7)), TypeError)
    const spread = object.map('spread')
    assert.throws(() => native.mapLookup(spread, word(1), new Uint8Array(spread.slotSize - 1)), TypeError)
    assert.throws(
      () => native.mapReadBatch(table, new Uint8Array(15), pair(0, 0), pair(0, 0), false),
      TypeError,
    )
  })
})

test('global data is shared memory: what one side writes the other reads', { skip: withoutBpf }, () => {
  withLab(lab => {
    lab.object.attach('svc_burst')
    lab.emit(7)
    lab.emit(11)
    assert.equal(lab.get('sequence'), 18)
    lab.set('sequence', 500)
    lab.emit(1)
    assert.equal(lab.get('sequence'), 501)
  })
})

test('a view outlives its object', { skip: withoutBpf }, () => {
  const lab = new Lab()
  lab.set('sequence', 77)
  lab.close()
  assert.equal(lab.get('sequence'), 77)
  lab.set('sequence', 78)
  assert.equal(lab.get('sequence'), 78)
})

test('only writable arrays can be viewed', { skip: withoutBpf }, () => {
  withLab(({ native, object }) => {
    assert.throws(() => native.mapView(object.map('table')), { code: 'EINVAL' })
    assert.throws(() => native.mapView(object.map('tally')), { code: 'EINVAL' })
    assert.throws(() => native.mapView(object.map('.rodata')), { code: /^E(PERM|ACCES)$/ })
  })
})

test('a closed object takes its maps with it', { skip: withoutBpf }, () => {
  const lab = new Lab()
  const map = lab.object.map('table')
  lab.close()
  assert.throws(() => lab.native.mapLookup(map, pair(0, 0), new Uint8Array(8)), { code: 'EBADF' })
  assert.throws(() => lab.object.map('table'), { code: 'EBADF' })
})
