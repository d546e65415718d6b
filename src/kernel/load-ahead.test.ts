// owns: host
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileBpf, withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { nativeOrThrow } from '../../test/helpers/native.ts'
import { BpfObject, LoadError } from './bpf-object.ts'
import { beginLoad, dropBegun, takeBegun } from './load-ahead.ts'
import { loadObject, newFile } from './load-object.ts'
import type { MapHandle, ObjectHandle } from './native.ts'

test('a begun load is completed by the one that needs it, once', { skip: withoutBpf }, () => {
  const native = nativeOrThrow()
  beginLoad(native, newFile('process'), { name: 'process' })
  const optional = ['svc_process_oom', 'svc_process_oom_pid']
  const { object } = loadObject(native, 'process', { optional })
  try {
    object.attach('svc_process_exec')
    assert.equal(takeBegun(newFile('process')), undefined)
  } finally {
    object.close()
  }
})

test('a begun load that the kernel rejects is an error like any other, and one that is abandoned ends', {
  skip: withoutBpf,
}, () => {
  const native = nativeOrThrow()
  const bytes = compileBpf('refused')
  const begun = (): ObjectHandle => {
    const handle = native.objectOpen(bytes, 'refused')
    native.objectLoadAhead(handle)
    return handle
  }
  assert.throws(() => BpfObject.load(native, bytes, { name: 'refused', begun: begun() }), LoadError)
  const optional = ['svc_wild', 'svc_absent']
  const object = BpfObject.load(native, bytes, { name: 'refused', optional, begun: begun() })
  assert.deepEqual([...object.leftOut.keys()], optional)
  object.close()
  const abandoned = begun()
  native.objectClose(abandoned)
  assert.throws(() => native.objectLoad(abandoned), { code: 'EBADF' })
})

test('a map can be shared before its object is loaded', { skip: withoutBpf }, () => {
  const native = nativeOrThrow()
  let shared: MapHandle | undefined
  beginLoad(native, 'sock.bpf.o', {
    name: 'sock',
    prepare: object => {
      shared = native.mapMake(object, 'requests')
    },
  })
  beginLoad(native, 'profile.bpf.o', {
    name: 'profile',
    prepare: object => native.objectReuseMap(object, 'requests', shared!),
  })
  const loaded = ['sock.bpf.o', 'profile.bpf.o'].map(file => {
    const handle = takeBegun(file)!
    assert.equal(native.objectLoad(handle).errno, 0)
    return handle
  })
  for (const handle of loaded) assert.equal(native.mapOpen(handle, 'requests').id, shared!.id)
  for (const handle of loaded) native.objectClose(handle)
})

test('what no one needs is unloaded', { skip: withoutBpf }, () => {
  const native = nativeOrThrow()
  for (const name of ['process', 'net']) beginLoad(native, newFile(name), { name })
  dropBegun(native, newFile('net'))
  assert.equal(takeBegun(newFile('net')), undefined)
  dropBegun(native)
  assert.equal(takeBegun(newFile('process')), undefined)
})
