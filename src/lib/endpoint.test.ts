import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEndpoint } from './endpoint.ts'

test('an endpoint may be written in every usual form', () => {
  const check = (text: string, insecure: boolean, want: string) => {
    const { host, port, secure, path } = parseEndpoint(text, insecure)
    assert.equal(`${secure ? 'tls' : 'plain'} ${host} ${port}${path}`, want)
  }
  check('collector', true, 'plain collector 4317')
  check('collector', false, 'tls collector 4317')
  check('collector:55', false, 'tls collector 55')
  check('http://collector:55/', false, 'plain collector 55')
  check('http://collector', false, 'plain collector 4317')
  check('HTTPS://collector', true, 'tls collector 443')
  check('dns:///collector:55', true, 'plain collector 55')
  check('dns://8.8.8.8/collector', true, 'plain collector 4317')
  check('[::1]:55', true, 'plain ::1 55')
  check('https://[fe80::1]', true, 'tls fe80::1 443')
  check('10.0.0.1:4317', true, 'plain 10.0.0.1 4317')
  check('https://collector:55/otlp/', true, 'tls collector 55/otlp')
})

test('an endpoint that is none is refused with the way to write it', () => {
  const check = (text: string) =>
    assert.throws(() => parseEndpoint(text, true), /cannot use the OTLP endpoint .*write host:port/, text)
  for (const text of ['', 'a:b', 'a:0', 'a:70000', 'ftp://a', '::1', 'a b', 'a:1,b:1', 'a/path', 'https://'])
    check(text)
  for (const text of ['http://a?x=1', 'http://a/p?x', 'http://a#x', 'http:///p', 'dns:///a/p']) check(text)
})

test('credentials in an endpoint are refused and not repeated', () => {
  for (const text of ['user:hunter2@host:1', 'https://hunter2@host', 'http://u:hunter2@x@host/']) {
    assert.throws(
      () => parseEndpoint(text, true),
      (error: Error) => /user name or password/.test(error.message) && !/hunter2/.test(error.message),
      text,
    )
  }
})
