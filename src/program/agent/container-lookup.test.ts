import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ByteRoom } from '../../foundation/lib/byte-room.ts'
import { ContainerLookup } from './container-lookup.ts'

test('what finds no room is found all the same, and counted as not looked at again', t => {
  const rootfs = mkdtempSync(join(tmpdir(), 'svc-lookup-'))
  t.after(() => rmSync(rootfs, { recursive: true }))
  const ids = ['a', 'b', 'c'].map(digit => digit.repeat(64))
  for (const id of ids) {
    const directory = join(rootfs, 'var/lib/docker/containers', id)
    mkdirSync(directory, { recursive: true })
    writeFileSync(
      join(directory, 'config.v2.json'),
      JSON.stringify({ ID: id, Name: `/${id[0]}`, Config: {} }),
    )
  }
  const room = new ByteRoom(2500)
  const gone: string[] = []
  const lookup = new ContainerLookup({
    rootfs,
    room,
    sink: { container: () => undefined, containerGone: id => gone.push(id) },
    isFollowed: () => false,
    intervalMs: () => 60_000,
  })
  assert.deepEqual(
    ids.map(id => lookup.find(id)?.name),
    ['a', 'b', 'c'],
  )
  lookup.find(ids[0]!)
  assert.equal(room.leftOut, 1)
  lookup.clear()
  assert.deepEqual([gone, room.bytes], [ids.slice(0, 2), 0])
})
