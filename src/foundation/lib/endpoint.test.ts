import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEndpoint, requestPath } from './endpoint.ts'

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

test('over HTTP a bare host has the port of OTLP, and a URL that of its scheme', () => {
  const check = (text: string, insecure: boolean, want: string) => {
    const { port, secure } = parseEndpoint(text, insecure, 'http')
    assert.equal(`${secure ? 'tls' : 'plain'} ${port}`, want)
  }
  check('collector', true, 'plain 4318')
  check('collector', false, 'tls 4318')
  check('dns:///collector', true, 'plain 4318')
  check('http://collector/otlp', false, 'plain 80')
  check('https://collector', true, 'tls 443')
  check('https://collector:4318', true, 'tls 4318')
})

test("a base endpoint's path is lengthened, that of one signal is kept as it is written", () => {
  const check = (endpoint: string, own: boolean, want: string) =>
    assert.equal(requestPath(endpoint, own, '/v1/logs'), want)
  check('collector:4318', false, '/v1/logs')
  check('https://collector', false, '/v1/logs')
  check('https://collector/', false, '/v1/logs')
  check('https://collector/otlp/', false, '/otlp/v1/logs')
  check('https://collector/otlp', false, '/otlp/v1/logs')
  check('https://collector/otlp/', true, '/otlp/')
  check('https://collector/v1/logs', true, '/v1/logs')
  check('https://collector', true, '/')
  check('collector:4318', true, '/v1/logs')
})

test('an endpoint that is none is refused with the way to write it', () => {
  const check = (text: string) =>
    assert.throws(() => parseEndpoint(text, true), /cannot use the OTLP endpoint .*write host:port/, text)
  for (const text of ['', 'a:b', 'a:0', 'a:70000', 'ftp://a', '::1', 'a b', 'a:1,b:1', 'a/path', 'https://'])
    check(text)
  for (const text of ['http://a?x=1', 'http://a/p?x', 'http://a#x', 'http:///p', 'dns:///a/p']) check(text)
})

test('credentials in an endpoint are refused and not repeated', () => {
  const faulty = [
    'user:hunter2@host:1',
    'https://hunter2@host',
    'http://u:hunter2@x@host/',
    'https://u:hunter2/x@host',
    'https://u:x/hunter2@host?hunter2',
  ]
  for (const text of faulty) {
    assert.throws(
      () => parseEndpoint(text, true),
      (error: Error) => /user name or password/.test(error.message) && !/hunter2/.test(error.message),
      text,
    )
  }
  for (const text of ['https://host/v1?token=hunter2', 'https://host#hunter2'])
    assert.throws(
      () => parseEndpoint(text, true),
      (error: Error) =>
        /"https:\/\/host.*\?\[REDACTED\]"/.test(error.message) && !/hunter2/.test(error.message),
      text,
    )
})
