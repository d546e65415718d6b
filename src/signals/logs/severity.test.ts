import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { namedSeverity, steppedSeverity, syslogSeverity, TextSeverity } from './severity.ts'

const runs = soak ? 1_000_000 : 20_000

const level = new TextSeverity()
const found = (line: string) => (level.find(line) ? `${level.severity} ${level.text}` : '')
const check = (line: string, want: string) => assert.equal(found(line), want, line)

test('lines of common loggers tell their level', () => {
  check('2026-01-01 12:00:00,123 INFO  [main] com.acme.Shop - started', '9 INFO')
  check('2026-01-01T12:00:00.123Z  WARN 1 --- [nio-8080-exec-1] o.s.web : slow', '13 WARN')
  check('2026/01/01 00:00:00 [error] 12#12: *1 open() failed', '17 error')
  check('[Thu Jan 01 00:00:00.1 2026] [core:error] [pid 12] AH00126: Invalid URI', '17 error')
  check('ERROR: relation "x" does not exist', '17 ERROR')
  check('2026-01-01 00:00:00.000 UTC [12] FATAL:  database is gone', '21 FATAL')
  check('error: cannot open the file', '17 error')
  check('Error: connect ECONNREFUSED', '17 Error')
  check('warn: Microsoft.Hosting[0]', '13 warn')
  check('info  - ready on port 3000', '9 info')
  check('[warn] something', '13 warn')
  check('[ WARN] something', '13 WARN')
  check('[INFO ] something', '9 INFO')
  check('(DEBUG) something', '5 DEBUG')
  check('12:00:00 | TRACE | text', '1 TRACE')
  check('DEBUG something', '5 DEBUG')
  check('CRITICAL:root:text', '21 CRITICAL')
  check('INFO:root:text', '9 INFO')
  check('12:00 <warning> text', '13 warning')
  check('1:M 01 Jan 2026 00:00:00.000 NOTICE ready', '10 NOTICE')
})

test('a field that names the level wins, wherever it stands', () => {
  check('time=2026-01-01T00:00:00Z level=info msg="an ERROR was seen"', '9 info')
  check('msg="x" an ERROR lvl=warn', '13 warn')
  check('ts=1 level="error" msg=x', '17 error')
  check('prefix {"level":"debug","msg":"x"}', '5 debug')
  check("severity: 'WARNING', text", '13 WARNING')
  check('loglevel=fatal', '21 fatal')
})

test('letters and numbers at the beginning are levels in the forms that are known', () => {
  check('I0102 15:04:05.000000       1 server.go:1] started', '9 I')
  check('E0102 15:04:05.000000       1 server.go:1] failed', '17 E')
  check('W/ActivityManager(12): slow', '13 W')
  check('E 12:00:00 failed', '17 E')
  check('[E 260101 12:00:00 web:1] 500', '17 E')
  check('[D] text', '5 D')
  check('<3>failed', '17 err')
  check('<14>text', '9 info')
  check('<191>text', '5 debug')
})

test('prose, paths and names tell nothing', () => {
  for (const line of [
    '',
    'no error was found',
    'I am here',
    'Error handling was completed',
    'Warning lights are on',
    'GET /ERROR HTTP/1.1',
    'INFORMED people',
    'myerror=1',
    'terror level',
    'an errors=0 count',
    'ERROR_CODE 12',
    '<192>text',
    '<3 text',
    '<>',
    'Information about it',
    'E',
    'Debugging is hard',
    `${'x'.repeat(300)} ERROR text`,
    'sea level: high',
  ])
    check(line, '')
})

test('numbers of pino and syslog have their severities', () => {
  assert.deepEqual([10, 20, 30, 35, 40, 50, 60].map(steppedSeverity), [1, 5, 9, 9, 13, 17, 21])
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 6, 7, 8, -1, 1.5, Number.NaN].map(syslogSeverity),
    [21, 19, 18, 17, 13, 10, 9, 5, 0, 0, 0, 0],
  )
  assert.equal(steppedSeverity(9), 0)
  assert.equal(steppedSeverity(70), 0)
  assert.equal(steppedSeverity(Number.NaN), 0)
  assert.equal(namedSeverity('WaRn'), 13)
  assert.equal(namedSeverity('constructor'), 0)
})

test('any text has a level that stands in it, or none', () => {
  const words = fc.constantFrom(
    'ERROR',
    'warn',
    'level=',
    '[',
    ']',
    '<3>',
    ':',
    ' ',
    '"',
    'I0102 1',
    '|',
    'é',
    '\0',
    '=',
  )
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.array(words).map(parts => parts.join('')),
  )
  fc.assert(
    fc.property(text, line => {
      if (!level.find(line)) return level.severity === 0 && level.text === ''
      return level.severity >= 1 && level.severity <= 24 && (line.includes(level.text) || line.includes('<'))
    }),
    { numRuns: runs },
  )
})
