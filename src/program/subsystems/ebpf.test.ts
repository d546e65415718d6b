import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { type LoadedObject, noteClosed, noteLoaded } from '../../kernel/loaded.ts'
import type { MapEntries } from '../../kernel/map-entries.ts'
import { ebpf } from './ebpf.ts'

const loaded: LoadedObject[] = []
afterEach(() => {
  for (const object of loaded.splice(0)) noteClosed(object)
})

function load(object: string, maps: readonly (readonly [name: string, id: number, entries: number])[]): void {
  const note: LoadedObject = {
    name: object,
    programs: () => [],
    maps: () =>
      maps.map(([name, id, count]) => ({
        map: { name, object, type: 'hash', id, maxEntries: 100 },
        entries: { isStale: false, count } as MapEntries,
      })),
  }
  loaded.push(note)
  noteLoaded(note)
}

test('maps of one name are one series with the entries of all; a map that objects share counts once', () => {
  load('net', [
    ['sockets', 1, 3],
    ['config', 2, 1],
  ])
  load('process', [
    ['config', 3, 4],
    ['sockets', 1, 3],
  ])
  const series: [number, ...string[]][] = []
  ebpf.metrics!.ebpf_map_entries!.collect!(undefined as never, (...each) => series.push(each))
  assert.deepEqual(series, [
    [3, 'sockets'],
    [5, 'config'],
  ])
})
