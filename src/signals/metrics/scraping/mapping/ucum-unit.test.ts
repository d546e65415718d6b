import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ucumUnit } from './ucum-unit.ts'

test('units of Prometheus become those of UCUM', () => {
  const check = (unit: string, want: string) => assert.equal(ucumUnit(unit), want)
  check('', '')
  check('seconds', 's')
  check('milliseconds', 'ms')
  check('minutes', 'min')
  check('days', 'd')
  check('bytes', 'By')
  check('kilobytes', 'kBy')
  check('mebibytes', 'MiBy')
  check('bits', 'bit')
  check('celsius', 'Cel')
  check('ratio', '1')
  check('percent', '%')
  check('volts', 'V')
  check('amperes', 'A')
  check('joules', 'J')
  check('watts', 'W')
  check('hertz', 'Hz')
  check('grams', 'g')
  check('meters', 'm')
})

test('a unit per another is one by the other', () => {
  const check = (unit: string, want: string) => assert.equal(ucumUnit(unit), want)
  check('bytes_per_second', 'By/s')
  check('requests_per_minute', 'requests/min')
  check('meters_per_seconds', 'm/s')
  check('joules_per_kilogram', 'J/kilogram')
  check('bytes_per_second_per_day', 'By/second_per_day')
})

test('what no table knows stays as it is', () => {
  const check = (unit: string) => assert.equal(ucumUnit(unit), unit)
  check('widgets')
  check('s')
  check('Seconds')
  check('constructor')
  check('__proto__')
  check('_per')
})
