import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DeviceFilterOptions, deviceFilter } from './_device-filter.ts'

const names = ['lo', 'eth0', 'eth1', 'veth9']

function check(options: Partial<DeviceFilterOptions>, want: readonly string[]): void {
  const shows = deviceFilter({ include: [], exclude: [], ...options }, 'netdev')
  assert.deepEqual(names.filter(shows), want)
  assert.deepEqual(names.filter(shows), want, 'the kept answers are the same')
}

test('no pattern shows all devices', () => {
  check({}, names)
  check({ include: '', exclude: '' }, names)
  check({ include: [''], exclude: [''] }, names)
})

test('patterns match anywhere in a name', () => {
  check({ include: 'eth' }, ['eth0', 'eth1', 'veth9'])
  check({ include: ['^eth', 'lo'] }, ['lo', 'eth0', 'eth1'])
  check({ exclude: ['^veth', '1$'] }, ['lo', 'eth0'])
})

test('an exclusion that nobody wrote yields to what is included', () => {
  const exclude = ['^lo$', '^veth']
  check({ exclude, defaultExclude: ['^lo$', '^veth'] }, ['eth0', 'eth1'])
  check({ include: ['lo'], exclude, defaultExclude: ['^lo$', '^veth'] }, ['lo'])
})

test('both at once are refused', () => {
  assert.throws(
    () => deviceFilter({ include: ['a'], exclude: ['b'], defaultExclude: ['c'] }, 'diskstats'),
    /diskstats: include and exclude are both set/,
  )
})
