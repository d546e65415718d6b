import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findAsset } from './assets.ts'

test('what was built is found, what was not is undefined', () => {
  assert.match(findAsset('svc.node')!, /\/dist\/svc\.node$/)
  assert.equal(findAsset('no-such-object.bpf.o'), undefined)
})
