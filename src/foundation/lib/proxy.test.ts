import assert from 'node:assert/strict'
import { test } from 'node:test'
import { proxyFromEnvironment } from './proxy.ts'

function proxyFor(environment: Record<string, string>, host = 'collector', port = 4317, secure = true) {
  return proxyFromEnvironment(environment)?.(host, port, secure)
}

test('the variable of the scheme names the proxy, in lower case first', () => {
  const check = (environment: Record<string, string>, secure: boolean, want: string) => {
    const found = proxyFor(environment, 'collector', 4317, secure)
    assert.equal(found ? `${found.secure ? 'tls' : 'plain'} ${found.host} ${found.port}` : 'none', want)
  }
  const both = { HTTPS_PROXY: 'http://a:1', HTTP_PROXY: 'b:2' }
  check(both, true, 'plain a 1')
  check(both, false, 'plain b 2')
  check({ HTTPS_PROXY: 'http://a:1' }, false, 'none')
  check({ ...both, https_proxy: 'c' }, true, 'plain c 80')
  check({ ...both, https_proxy: '' }, true, 'plain a 1')
  check({ https_proxy: 'https://[::1]' }, true, 'tls ::1 443')
  check({}, true, 'none')
  check({ HTTPS_PROXY: '  ' }, true, 'none')
})

test('user and password go into the header, decoded, and into no message', () => {
  const check = (proxy: string, want: string) => {
    const { authorization } = proxyFor({ HTTPS_PROXY: proxy })!
    assert.equal(Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString(), want)
  }
  check('http://user:p%40ss%3A%C3%BC@a:1', 'user:p@ss:ü')
  check('user@a', 'user:')
  check('a', '')
  const refuse = (proxy: string, want: RegExp) =>
    assert.throws(
      () => proxyFromEnvironment({ https_proxy: proxy }),
      (error: Error) => want.test(error.message) && !/hunter2/.test(error.message),
    )
  refuse('http://user:hunter2@', /cannot use the proxy of https_proxy: not a URL/)
  refuse('http://user:hunter2@a:99999', /not a URL/)
  refuse('socks5://user:hunter2@a', /the scheme socks5 is not supported/)
  refuse('http://user:hunter2%zz@a', /write % as %25/)
})

test('NO_PROXY exempts names with those below them, addresses, ranges, ports, or everything', () => {
  const check = (exempt: string, host: string, want: boolean, port = 4317) =>
    assert.equal(
      proxyFor({ HTTPS_PROXY: 'p', NO_PROXY: exempt }, host, port) === undefined,
      want,
      `${exempt} | ${host}:${port}`,
    )
  check('*', 'anything', true)
  check('', 'localhost', false)
  check('', '127.0.0.1', false)
  for (const entry of ['example.com', '.example.com', '*.example.com', 'EXAMPLE.com.', 'x, example.com y']) {
    check(entry, 'example.com', true)
    check(entry, 'a.b.Example.com.', true)
    check(entry, 'badexample.com', false)
    check(entry, 'example.com.evil.org', false)
  }
  check('example.com:4317', 'example.com', true)
  check('example.com:4318', 'example.com', false)
  check('10.0.0.0/8,192.168.1.1', '10.200.3.4', true)
  check('10.0.0.0/8,192.168.1.1', '192.168.1.1', true)
  check('10.0.0.0/8', '11.0.0.1', false)
  check('10.0.0.0/33', '10.0.0.1', false)
  check('10.0.0.0/8', 'ten.example.com', false)
  check('10.0.0.0/8', '::ffff:10.0.0.1', true)
  check('fd00::/8', 'fd12::1', true)
  check('fd00::/8', 'fe80::1', false)
  check('::1', '0:0:0:0:0:0:0:1', true)
  check('[::1]:4317', '::1', true)
  check('[::1]:4318', '::1', false)
  check('[::1]', '::1', true)
  check('192.168.1.1:4317', '192.168.1.1', true)
  check('192.168.1.1:4318', '192.168.1.1', false)
  check('., ,,*.', 'collector', false)
})
