import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { withoutZoneDatabase, zoneDatabase } from '../../../test/helpers/host-needs.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { TimeZone } from './time-zone.ts'

const utcSeconds = (text: string) => Date.parse(`${text}Z`) / 1000

/** A file of version 2: an old part that is empty but for a type, then changes to types by index. */
function file(
  types: readonly (readonly [name: string, offset: number])[],
  changes: readonly (readonly [at: number, type: number])[],
  footer: string,
): Buffer {
  const names = `${types.map(([name]) => name).join('\0')}\0`
  const block = (times: typeof changes) => {
    const head = Buffer.alloc(44)
    head.write('TZif2')
    head.writeUInt32BE(times.length, 32)
    head.writeUInt32BE(types.length, 36)
    head.writeUInt32BE(names.length, 40)
    const data = Buffer.alloc(times.length * 9 + types.length * 6)
    for (const [i, [at, type]] of times.entries()) {
      data.writeBigInt64BE(BigInt(at), i * 8)
      data[times.length * 8 + i] = type
    }
    let nameAt = 0
    for (const [i, [name, offset]] of types.entries()) {
      data.writeInt32BE(offset, times.length * 9 + i * 6)
      data[times.length * 9 + i * 6 + 5] = nameAt
      nameAt += name.length + 1
    }
    return Buffer.concat([head, data, Buffer.from(names)])
  }
  return Buffer.concat([block([]), block(changes), Buffer.from(`\n${footer}\n`)])
}

const berlin = 'CET-1CEST,M3.5.0,M10.5.0/3'

test('changes that the file lists hold until its rule does', () => {
  const types = [
    ['LMT', 3208],
    ['CET', 3600],
    ['CEST', 7200],
  ] as const
  const zone = TimeZone.parse(
    file(
      types,
      [
        [-1000, 1],
        [500, 2],
        [2000, 1],
      ],
      berlin,
    ),
  )
  const check = (at: number, name: string, offsetSeconds: number) =>
    assert.deepEqual(zone.at(at), { name, offsetSeconds })
  check(-1001, 'LMT', 3208)
  check(-1000, 'CET', 3600)
  check(499, 'CET', 3600)
  check(500, 'CEST', 7200)
  check(2000, 'CET', 3600)
  check(utcSeconds('2026-03-29T00:59:59'), 'CET', 3600)
  check(utcSeconds('2026-03-29T01:00:00'), 'CEST', 7200)
  check(utcSeconds('2026-10-25T00:59:59'), 'CEST', 7200)
  check(utcSeconds('2026-10-25T01:00:00'), 'CET', 3600)
})

test('rules of all kinds are understood', () => {
  const check = (rule: string, at: string, name: string, offsetSeconds: number) =>
    assert.deepEqual(
      TimeZone.parse(file([['-00', 0]], [], rule)).at(utcSeconds(at)),
      { name, offsetSeconds },
      `${rule} at ${at}`,
    )
  check('<+0545>-5:45', '2026-01-01T00:00:00', '+0545', 20_700)
  check('<-03>3', '2026-01-01T00:00:00', '-03', -10_800)
  // South of the equator, by half an hour.
  const lordHowe = '<+1030>-10:30<+11>-11,M10.1.0,M4.1.0'
  check(lordHowe, '2026-01-15T00:00:00', '+11', 39_600)
  check(lordHowe, '2026-07-15T00:00:00', '+1030', 37_800)
  // Winter time that is behind standard time, and a change before the day.
  check('IST-1GMT0,M10.5.0,M3.5.0/1', '2026-01-15T00:00:00', 'GMT', 0)
  check('<-02>2<-01>,M3.5.0/-1,M10.5.0/0', '2026-03-29T01:00:00', '-01', -3600)
  check('<-02>2<-01>,M3.5.0/-1,M10.5.0/0', '2026-03-29T00:59:59', '-02', -7200)
  // Days of the year, with and without the leap day.
  check('AAA0BBB,J60/0,J300/0', '2024-03-01T00:00:00', 'BBB', 3600)
  check('AAA0BBB,J60/0,J300/0', '2024-02-29T23:59:59', 'AAA', 0)
  check('AAA0BBB,59/0,300/0', '2024-02-29T00:00:00', 'BBB', 3600)
  check('AAA0BBB,59/0,300/0', '2023-03-01T00:00:00', 'BBB', 3600)
  check('EST5EDT', '2026-07-01T00:00:00', 'EDT', -14_400)
})

test('what is no such file is an error', () => {
  const good = file([['CET', 3600]], [[0, 0]], berlin)
  const huge = Buffer.from(good)
  huge.writeUInt32BE(0xffff_ffff, 32)
  const wrongType = file([['CET', 3600]], [[0, 7]], berlin)
  const junk = [Buffer.alloc(0), Buffer.from('TZif'), Buffer.alloc(4096, 'TZif2'), huge, wrongType]
  for (const bytes of [...junk, file([['CET', 3600]], [], 'CET-1CEST,sometimes')])
    assert.throws(() => TimeZone.parse(bytes), /not a file of the zoneinfo database/)
  for (let length = 0; length < good.length - berlin.length - 2; length++)
    assert.throws(() => TimeZone.parse(good.subarray(0, length)))
})

test('this host’s zones agree with its JavaScript', { skip: withoutZoneDatabase }, () => {
  const zones = [
    'Europe/Berlin',
    'America/Sao_Paulo',
    'Australia/Lord_Howe',
    'Asia/Kathmandu',
    'Europe/Dublin',
  ]
  for (const name of [...zones, 'America/New_York', 'Pacific/Chatham', 'Etc/UTC']) {
    const zone = TimeZone.parse(readFileSync(`${zoneDatabase}/${name}`))
    const format = new Intl.DateTimeFormat('en', { timeZone: name, timeZoneName: 'longOffset' })
    for (let at = utcSeconds('1990-01-01'); at < utcSeconds('2060-01-01'); at += 86_400 * 9.7) {
      const shown = /GMT(?:([+-])(\d\d):(\d\d))?$/.exec(format.format(at * 1000))!
      const offset = (shown[1] === '-' ? -60 : 60) * (Number(shown[2] ?? 0) * 60 + Number(shown[3] ?? 0))
      assert.equal(zone.at(at).offsetSeconds, offset, `${name} at ${at}`)
    }
  }
})

const numRuns = soak ? 50_000 : 500
const day = 86_400

/** A zone that was taken answers every question with what makes sense, and costs no more than its file. */
function holds(bytes: Buffer): void {
  let zone: TimeZone
  try {
    zone = TimeZone.parse(bytes)
  } catch (error) {
    assert.match((error as Error).message, /^not a file of the zoneinfo database$/)
    return
  }
  for (const at of [
    0,
    -1e12,
    1e12,
    8.7e12,
    -Number.MAX_VALUE,
    Number.MAX_VALUE,
    utcSeconds('2026-07-01'),
    Number.NaN,
  ]) {
    const { name, offsetSeconds } = zone.at(at)
    assert.ok(Math.abs(offsetSeconds) <= 26 * 3600, `${offsetSeconds}`)
    assert.match(name, /^[A-Za-z0-9+-]{1,32}$/)
  }
}

const rules = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        'CET',
        '<+0545>',
        '-1',
        '5:45',
        ',',
        'M3.5.0',
        'M13.1.0',
        'M0.1.0',
        'J60',
        'J999',
        '/',
        '/167',
        '-999',
        '0',
      ),
      fc.string({ maxLength: 6 }),
    ),
    { maxLength: 10 },
  )
  .map(parts => parts.join(''))

test('any bytes are a zone that makes sense, or none', () => {
  const good = file(
    [
      ['CET', 3600],
      ['CEST', 7200],
    ],
    [
      [0, 1],
      [500, 0],
    ],
    berlin,
  )
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 6 }),
      fc.nat(good.length),
      fc.boolean(),
      rules,
      (changes, length, isCut, rule) => {
        const bytes = Buffer.from(good)
        for (const [at, value] of changes) bytes[at] = value
        holds(isCut ? bytes.subarray(0, length) : bytes)
        holds(file([['CET', 3600]], [[0, 0]], rule))
        holds(Buffer.concat([Buffer.from('TZif2'), bytes.subarray(5, length)]))
      },
    ),
    { numRuns },
  )
})

test('counts that the bytes do not hold, and names without an end, cost nothing', () => {
  const many = (types: number, names: number) => {
    const bytes = Buffer.alloc(44 + types * 6 + names, 'x')
    bytes.write('TZif\0')
    bytes.fill(0, 5, 44 + types * 6)
    bytes.writeUInt32BE(types, 36)
    bytes.writeUInt32BE(names, 40)
    return bytes
  }
  for (const bytes of [many(100_000, 4_000_000), many(256, 4_000_000), many(1, 10)])
    assert.throws(() => TimeZone.parse(bytes), /not a file of the zoneinfo database/)
  for (let i = 0; i < 6; i++) {
    const huge = file([['CET', 3600]], [[0, 0]], berlin)
    huge.writeUInt32BE(0xffff_ffff, 20 + 4 * i)
    assert.throws(() => TimeZone.parse(huge), /not a file of the zoneinfo database/)
  }
})

test('the rule of a zone and a list of its changes tell the same', () => {
  const types = [
    ['CET', 3600],
    ['CEST', 7200],
  ] as const
  const byRule = TimeZone.parse(file(types, [], berlin))
  const changes: [number, number][] = []
  for (let year = 2000; year < 2060; year++) {
    const lastSunday = (month: number) => {
      const end = new Date(Date.UTC(year, month, 0))
      return end.getTime() / 1000 - end.getUTCDay() * day + 3600
    }
    changes.push([lastSunday(3), 1], [lastSunday(10), 0])
  }
  const byList = TimeZone.parse(file(types, changes, ''))
  fc.assert(
    fc.property(fc.integer({ min: utcSeconds('2001-01-01'), max: utcSeconds('2059-12-01') }), at => {
      assert.deepEqual(byRule.at(at), byList.at(at))
    }),
    { numRuns },
  )
})
