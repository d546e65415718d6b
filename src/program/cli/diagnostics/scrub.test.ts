import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { scrubFor } from './scrub.ts'

const none = scrubFor([])

test('what looks like a secret is replaced, and what does not stays', () => {
  const check = (text: string, want: string) => assert.equal(none.text(text), want)
  const same = (text: string) => check(text, text)
  check('Authorization: Basic dTpw and more', 'Authorization: [REDACTED]')
  check('{"authorization":"Bearer abc.def"}', '{"authorization":"[REDACTED]"}')
  check('curl -H "Authorization: token abc" x', 'curl -H "Authorization: [REDACTED]" x')
  check('Cookie: a=b; c=d\nnext', 'Cookie: [REDACTED]\nnext')
  check('sent bearer s3cr3t+/= to it', 'sent bearer [REDACTED] to it')
  check('http://user:p@ss@host:80/x http://host/@x', 'http://[REDACTED]@host:80/x http://host/@x')
  check('redis://:pw@host', 'redis://[REDACTED]@host')
  check('password=hunter2&user=me', 'password=[REDACTED]&user=me')
  check('PASSWORD = "hunter 2", x', 'PASSWORD = "[REDACTED]", x')
  check("api-key: 'a b'", "api-key: '[REDACTED]'")
  check(
    'password: hunter2\ntoken:abc def\n"secret" : x, ',
    'password: [REDACTED]\ntoken:[REDACTED] def\n"secret" : [REDACTED], ',
  )
  check('{\\"client_secret\\":\\"x\\"}', '{\\"client_secret\\":\\"[REDACTED]\\"}')
  check('?token=abc&a=1 secret_access_key=AB/CD', '?token=[REDACTED]&a=1 secret_access_key=[REDACTED]')
  check('a eyJhbGciOiJI.eyJzdWIiOiIx.sig-_x b', 'a [REDACTED] b')
  const pem = '-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----'
  check(`a ${pem}\nb ${pem}`, 'a [REDACTED]\nb [REDACTED]')
  check('-----BEGIN PRIVATE KEY-----\ncut o', '[REDACTED]')
  check('password: [REDACTED], token=[REDACTED]', 'password: [REDACTED], token=[REDACTED]')
  same('a valid bearer token is needed')
  same('f.yaml:3:1: auth.bearer_token: expected text, found a list')
  same('tokens 5, secrets and passwords')
  same(`bearer_token: \${file:/etc/svc/token}`)
  same('-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----')
  same('mail to me@example.com, http://127.0.0.1:19090/status')
  same('svc_spans_dropped_total{reason="queue_full"} 3')
})

test('known secrets are found however they are written, the longer one first', () => {
  const scrub = scrubFor([
    'pa"ss\nwör/d',
    'hunter2',
    'hunter2-long',
    'Bearer tok.123',
    'Basic dTpwYXNzd2Q=',
    'abc',
  ])
  const check = (text: string, want: string) => assert.equal(scrub.text(text), want)
  check('hunter2-long hunter2', '[REDACTED] [REDACTED]')
  check(`x ${JSON.stringify('pa"ss\nwör/d')}`, 'x "[REDACTED]"')
  check(`x ${encodeURIComponent('pa"ss\nwör/d')}`, 'x [REDACTED]')
  check(`x ${Buffer.from('pa"ss\nwör/d').toString('base64')}`, 'x [REDACTED]')
  check('a line of it: wör/d', 'a line of it: [REDACTED]')
  check('tok.123 dTpwYXNzd2Q= passwd', '[REDACTED] [REDACTED] [REDACTED]')
  check('abc', 'abc') // too short to tell from other text
})

test('JSON stays JSON, and names decide too', () => {
  const scrub = scrubFor(['12345', 'quo"te'])
  const check = (value: unknown, want: unknown) =>
    assert.deepEqual(JSON.parse(scrub.json(JSON.stringify(value))), want)
  check({ a: 12345, b: 1234, c: 'quo"te' }, { a: '[REDACTED]', b: 1234, c: '[REDACTED]' })
  check(
    { password: 'x', 'x-api-key': 'y', n: { salt: 'z' } },
    {
      password: '[REDACTED]',
      'x-api-key': '[REDACTED]',
      n: { salt: '[REDACTED]' },
    },
  )
  check(
    { bearer_tokens: ['a', 'b'], token: '', tokens: 5, enabled: true },
    {
      bearer_tokens: ['[REDACTED]', '[REDACTED]'],
      token: '',
      tokens: 5,
      enabled: true,
    },
  )
  check(
    { accessToken: 'a', bearerTokens: ['b'], dbPassword: 'c', compass: 'd', brokenAt: 'e' },
    {
      accessToken: '[REDACTED]',
      bearerTokens: ['[REDACTED]'],
      dbPassword: '[REDACTED]',
      compass: 'd',
      brokenAt: 'e',
    },
  )
  check({ 'key 12345': null, basic: 'none' }, { 'key [REDACTED]': null, basic: 'none' })
  assert.equal(scrub.json('{"a":"12345'), '{"a":"[REDACTED]\n')
  const [first, second, third] = scrub.lines('{"a":"12345"}\nplain 12345\n').split('\n')
  assert.deepEqual([first, second, third], ['{"a":"[REDACTED]"}', 'plain [REDACTED]', ''])
})

test('whatever stands around it, a known secret is gone, and JSON stays JSON', () => {
  const secret = 'S3cret/Value+1'
  const scrub = scrubFor([secret])
  const around = fc.string({ unit: fc.constantFrom(...'a:="\'\\ \n/@{}[]&-eyJ.') })
  fc.assert(
    fc.property(around, around, (before, after) => {
      const once = scrub.text(before + secret + after)
      assert.ok(!once.includes(secret))
      const [json] = [scrub.json(JSON.stringify({ [before]: before + secret + after }))]
      assert.ok(!json.includes(secret))
      JSON.parse(json)
    }),
  )
})

test('text made to be slow is not: every shape takes linear time', { timeout: 60_000 }, () => {
  const most = 2_000_000
  for (const piece of [
    'eyJ',
    'eyJ-',
    'eyJaaaa.',
    '-----BEGIN PRIVATE KEY-----',
    '-----BEGIN A',
    'a://',
    'a://b:',
    `http://${'a'.repeat(500)}`,
    'Bearer ',
    'bearer aaa ',
    'authorization',
    'authorization: ',
    'password',
    'password=',
    'secret_access_key ',
    'api_key:"',
    'token:',
    'token: ',
    'token: x y ',
    'token: x:',
    '        =',
    '${',
  ]) {
    const text = piece.repeat(most / piece.length)
    assert.ok(none.text(text).length > 0)
  }
})
