// Who may ask, for any headers: held to the parser of URLs that browsers have, and to a second writing of the rules.

import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { Cors } from './cors.ts'
import { Guard, type PeerUser } from './guard.ts'
import { HostNames } from './host-names.ts'

const token = 'hunter2-hunter2'

function guard(
  options: { allowRemote?: boolean; auth?: boolean; origins?: readonly string[]; peerUser?: PeerUser } = {},
): Guard {
  const { allowRemote = false, auth = false, origins = [], peerUser } = options
  return new Guard({
    settings: {
      auth: { enabled: auth, bearer_token: token, bearer_tokens: ['', 'another'], exempt: ['/exempt'] },
      admin: { allow_remote: allowRemote },
    },
    cors: new Cors({ enabled: true, allowed_origins: origins }),
    open: ['/healthz'],
    names: new HostNames(['host-a', 'Host-A.example.']),
    key: undefined,
    peerUser,
  })
}

const asked = (headers: IncomingHttpHeaders, url = '/') => ({ headers, url }) as IncomingMessage

/** Whether a name, as a browser writes it, is one of this host's or an address. */
function isOwnName(hostname: string): boolean {
  const name = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  return isIP(name) !== 0 || /^(?:.*\.)?localhost$|^host-a(?:\.example)?$/.test(name)
}

/** Own names and addresses, what looks like them, and pieces of both. */
const name = fc.oneof(
  fc.constantFrom(
    'localhost',
    'a.localhost',
    'host-a',
    'HOST-A',
    'host-a.example',
    'host-a.example.',
    'localhost.',
  ),
  fc.constantFrom('127.0.0.1', '127.1', '0x7f000001', '[::1]', '[::ffff:127.0.0.1]', '10.0.0.1', '[fe80::1]'),
  fc.constantFrom(
    'evil.example',
    'localhost.evil.example',
    'evil-localhost',
    'host-a.evil.example',
    '127.0.0.1.nip.io',
  ),
  fc.constantFrom('xlocalhost', 'host-a.', 'host-a..', 'example', 'ⓛocalhost', 'localhost%2eevil.example'),
  fc.domain(),
)
const authority = fc
  .tuple(
    fc.constantFrom('', '', '', '', 'localhost@', 'host-a:80@'),
    name,
    fc.constantFrom('', ':80', ':19090', ':1'),
  )
  .map(parts => parts.join(''))
const odd = fc
  .array(
    fc.oneof(
      name,
      fc.constantFrom('@', ':', '/', '\\', '#', '?', '[', ']', ' ', '\t', '%00', ',', ';', '\0', '.'),
    ),
    {
      maxLength: 5,
    },
  )
  .map(parts => parts.join(''))

function urlOf(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}

test('a browser is answered for the names of this host and for addresses, and for no other', () => {
  fc.assert(
    fc.property(fc.constantFrom('http', 'https'), authority, (scheme, text) => {
      const url = urlOf(`${scheme}://${text}/`)
      if (url === undefined) return
      const refused = guard().foreignName(asked({ host: url.host }))
      assert.equal(refused === undefined, isOwnName(url.hostname), url.host)
      // The target stands above Host.
      assert.equal(
        guard().foreignName(asked({ host: 'localhost' }, `${scheme}://${url.host}/x`)) === undefined,
        isOwnName(url.hostname),
      )
    }),
    { numRuns: 1_000 },
  )
})

test('no way of writing a Host makes a foreign name one of this host', () => {
  const own = /^(?:(?:[^:@]*\.)?localhost\.?|host-a(?:\.example)?\.?|[\d.]+|\[[\da-f:.]+\])(?::\d*)?$/i
  for (const end of ['\\', '/', '?', '#', '<', '^', '|', '%', ' ', '\0', '\t'])
    assert.ok(guard().foreignName(asked({ host: `evil${end}.localhost` })) !== undefined, end)
  fc.assert(
    fc.property(fc.oneof(odd, authority, fc.string({ unit: 'binary' })), host => {
      if (guard().foreignName(asked({ host })) === undefined) assert.match(host, own)
    }),
    { numRuns: 400 },
  )
})

test('a page of another origin changes nothing, however its Origin, the Host and the target are written', () => {
  const listed = 'https://app.example'
  const origin = fc.oneof(
    fc.tuple(fc.constantFrom('http://', 'https://'), authority).map(parts => parts.join('')),
    fc.tuple(fc.constantFrom('http://', 'https://', 'null', 'file://', ''), odd).map(parts => parts.join('')),
    fc.constantFrom('null', '', listed, `${listed}.evil.example`, `${listed}:80`),
  )
  let taken = 0
  fc.assert(
    fc.property(origin, fc.oneof(authority, odd), fc.boolean(), fc.boolean(), (origin, host, tls, isSame) => {
      const each = guard({ origins: [listed, '*', 'null'] })
      const request = asked({ origin, host: isSame ? origin.replace(/^https?:\/\//, '') : host })
      if (each.foreignPage(request, { tls, port: 19_090 }) !== undefined) return
      if (each.foreignName(request) !== undefined) return
      taken++
      if (origin === listed) return
      const url = urlOf(origin)
      // Other programs than browsers may send what is no URL, and gain nothing by it.
      if (url === undefined) return
      assert.ok(isOwnName(url.hostname), origin)
      assert.ok(!tls || url.protocol === 'https:', 'a page without TLS is another’s than the server with it')
      const isLoopback = /^(?:(?:.*\.)?localhost|127\.[\d.]+|\[::1\]|\[::ffff:7f[\da-f:]+\])\.?$/.test(
        url.hostname,
      )
      const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
      assert.ok(
        url.host === urlOf(`${url.protocol}//${request.headers.host}`)?.host ||
          (isLoopback && port === 19_090),
      )
    }),
    { numRuns: 2_000 },
  )
  assert.ok(taken > 10, String(taken))
})

test('a page that the browser calls another’s is one without Origin as well', () => {
  const site = fc.constantFrom('cross-site', 'same-site', 'same-origin', 'none', undefined)
  fc.assert(
    fc.property(site, authority, (site, host) => {
      const headers = { host, ...(site === undefined ? {} : { 'sec-fetch-site': site }) }
      const refused = guard().foreignPage(asked(headers), { tls: false, port: 19_090 }) !== undefined
      assert.equal(refused, site === 'cross-site' || site === 'same-site')
    }),
  )
})

test('trust is for root and the own user on loopback, and not for what a proxy passes on', () => {
  const own = process.geteuid!()
  const address = fc.oneof(
    fc.constantFrom('127.0.0.1', '::1', '::ffff:127.0.0.1', '127.9.9.9', '10.0.0.1', '::', '::ffff:10.0.0.1'),
    fc.constantFrom('127.0.0.1.example', '::ffff:', '128.0.0.1', '1127.0.0.1', undefined),
    fc.ipV4(),
    fc.ipV6(),
  )
  const user = fc.constantFrom(0, own, 1_000, 65_534, undefined)
  const passing = fc.constantFrom(
    'forwarded',
    'via',
    'x-real-ip',
    'x-forwarded-for',
    'x-forwarded',
    'x-forwarded-x',
  )
  const other = fc.constantFrom('accept', 'x-real', 'viaduct', 'cookie', 'host', 'x-forward', 'user-agent')
  const headers = fc.dictionary(fc.oneof({ arbitrary: other, weight: 3 }, passing), fc.string(), {
    maxKeys: 3,
  })
  fc.assert(
    fc.property(address, user, headers, fc.boolean(), (remoteAddress, user, headers, allowRemote) => {
      const socket = {
        remoteAddress,
        remotePort: 1,
        localAddress: '127.0.0.1',
        localPort: 2,
      } as unknown as Socket
      const bare = remoteAddress?.replace('::ffff:', '') ?? ''
      const isLocal = bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'))
      const isPassed = Object.keys(headers).some(each =>
        /^(?:forwarded|via|x-real-ip)$|^x-forwarded/.test(each),
      )
      const want = isLocal ? !isPassed && (user === 0 || (user === own && user !== 65_534)) : allowRemote
      const trusted = guard({ allowRemote, peerUser: () => user }).trusts(
        { socket, user: undefined },
        headers,
      )
      assert.equal(trusted, want)
    }),
    { numRuns: 1_000 },
  )
})

test('a token is the whole of what is shown, and a path needs none only by its very name', () => {
  const scheme = fc.constantFrom('Bearer', 'bearer', 'BEARER', 'Basic', 'Bearer:', '')
  const shown = fc.oneof(
    fc.constantFrom(
      token,
      'another',
      '',
      `${token}x`,
      token.slice(1),
      `${token} x`,
      `${token},another`,
      '\0',
    ),
    fc.string(),
  )
  const path = fc.oneof(
    fc.constantFrom(
      '/healthz',
      '/exempt',
      '/exempt/',
      '/EXEMPT',
      '/exempt/../status',
      '/status',
      '//healthz',
    ),
    fc.webPath(),
  )
  fc.assert(
    fc.property(fc.option(fc.tuple(scheme, shown)), path, (pair, path) => {
      const headers = pair === null ? {} : { authorization: pair.join(' ') }
      const isRight =
        pair !== null && /^bearer$/i.test(pair[0]) && [token, 'another'].includes(pair[1].trim())
      const isOpen = path === '/healthz' || path === '/exempt'
      const got = guard({ auth: true }).admits(path, asked(headers), { tls: false, port: 1 })
      assert.equal(got, isRight ? 'token' : isOpen ? 'none' : 'refused')
    }),
    { numRuns: 1_000 },
  )
})
