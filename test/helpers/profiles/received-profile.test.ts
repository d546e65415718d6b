import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Attributes } from '../../../src/foundation/model/attributes.ts'
import type { Frame, Mapping, Profile } from '../../../src/foundation/model/profile.ts'
import { resource } from '../../../src/foundation/model/resource.ts'
import { profileEncoding } from '../../../src/pipeline/exporters/otlp/encode-profile.ts'
import { RequestBuilder } from '../../../src/pipeline/exporters/otlp/request.ts'
import { linesOf } from '../otlp-items.ts'
import { requestType } from '../otlp-proto.ts'

test('receivers of tests keep profiles with the names of their frames', () => {
  const hash = '00112233445566778899aabbccddeeff'
  const mapping: Mapping = { path: '/usr/bin/shop', buildId: '', hash, start: 4096, limit: 8192, offset: 0 }
  const frame = (name: string, more: Partial<Frame> = {}): Frame => ({ name, file: '', line: 0, ...more })
  const profile: Profile = {
    kind: 'cpu',
    unit: 'nanoseconds',
    startUs: 1_700_000_000_000_000,
    durationUs: 1_000_000,
    period: 1_000_000,
    samples: [
      {
        frames: [
          frame('spin(int)', { systemName: '_Z4spini', type: 'native', mapping, address: 4100 }),
          frame('main', { file: 'main.c', line: 7 }),
        ],
        value: 3_000_000,
        attributes: Attributes.of({ 'thread.name': 'worker' }),
        link: { traceId: new Uint8Array(16).fill(1), spanId: new Uint8Array(8).fill(2) },
      },
      { frames: [frame('main')], value: 1_000_000, attributes: new Attributes() },
    ],
  }
  const builder = new RequestBuilder(profileEncoding())
  builder.add(resource({ 'service.name': 'shop' }), { name: 'svc/profiler', version: '1' }, profile)
  const { body } = builder.take()[0]!
  const [line, ...others] = linesOf('profiles', requestType('profiles').decode(body))
  assert.equal(others.length, 0)
  const nowhere = { path: '', attributes: {} }
  const bare = { systemName: '', file: '', line: 0, address: 0, type: '', mapping: nowhere }
  assert.deepEqual(line, {
    signal: 'profiles',
    resource: { 'service.name': 'shop' },
    scope: 'svc/profiler',
    name: 'profile',
    kind: 'cpu',
    unit: 'nanoseconds',
    startNs: '1700000000000000000',
    durationNs: '1000000000',
    period: 1_000_000,
    samples: [
      {
        frames: [
          {
            ...{
              name: 'spin(int)',
              systemName: '_Z4spini',
              file: '',
              line: 0,
              address: 4100,
              type: 'native',
            },
            mapping: { path: '/usr/bin/shop', attributes: { 'process.executable.build_id.htlhash': hash } },
          },
          { ...bare, name: 'main', file: 'main.c', line: 7 },
        ],
        value: 3_000_000,
        attributes: { 'thread.name': 'worker' },
        traceId: '01'.repeat(16),
        spanId: '02'.repeat(8),
      },
      { frames: [{ ...bare, name: 'main' }], value: 1_000_000, attributes: {}, traceId: '', spanId: '' },
    ],
  })
})
