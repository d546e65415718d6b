import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LogRecord } from '../../foundation/model/log.ts'
import { entryFields, JournalEntries, journalContainer } from './journal-entry.ts'
import { RecordParser } from './record-parser.ts'

const entries = () =>
  new JournalEntries(new RecordParser({ json: true, severity: true, traceContext: true }), 1)
const id = 'c'.repeat(64)

test('a container is told by root alone: every program may write its fields', () => {
  const told = (uid: string) => {
    const record = new LogRecord()
    const entry = { __CURSOR: 'c', MESSAGE: 'm', _UID: uid, CONTAINER_ID_FULL: id, CONTAINER_NAME: 'shop' }
    assert.equal(entries().read(record, Buffer.from(JSON.stringify(entry)), 1), 'record')
    return [
      journalContainer(record),
      record.attributes.get('container.id'),
      record.attributes.get('container.name'),
    ]
  }
  assert.deepEqual(told('0'), [id, id, 'shop'])
  assert.deepEqual(told('1000'), ['', undefined, undefined])
})

test('whatever an entry holds, a record has bounded attributes of whole numbers and texts', () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.nat().map(String),
    fc.array(fc.integer({ min: -300, max: 300 })),
    fc.jsonValue(),
    fc.constant('x'.repeat(5_000)),
  )
  const field = fc.constantFrom(...entryFields, '__CURSOR', '__REALTIME_TIMESTAMP', '__proto__', 'X')
  const entry = fc.dictionary(field, value).map(each => ({ __CURSOR: 'c', MESSAGE: 'm', ...each }))
  const reader = entries()
  const record = new LogRecord()
  const kinds = new Set<string>()
  const check = (line: Buffer) => {
    const kind = reader.read(record, line, 1)
    kinds.add(kind)
    if (kind !== 'record') return
    assert.ok(Number.isSafeInteger(record.timeUs) && record.timeUs >= 0)
    const { attributes } = record
    for (let i = 0; i < attributes.size; i++) {
      const each = attributes.values[i]!
      if (typeof each === 'number') assert.ok(Number.isFinite(each), attributes.keys[i])
    }
    for (const key of ['process.executable.name', 'container.name', 'svc.systemd.unit'])
      assert.ok(String(attributes.get(key) ?? '').length <= 1_024)
  }
  fc.assert(fc.property(entry, each => check(Buffer.from(JSON.stringify(each)))))
  fc.assert(fc.property(fc.uint8Array(), bytes => check(Buffer.from(bytes))))
  assert.ok(kinds.has('record') && kinds.has('odd'))
})
