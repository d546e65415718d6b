import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { heapGrowth } from '../../../../test/helpers/heap.ts'
import type { Owner } from '../../../foundation/lib/fair-share.ts'
import { isIdentifier } from './route-segment.ts'
import { pathMatcher, type RouteOptions, Routes } from './routes.ts'

const alice: Owner = { group: '/system.slice/shop.service', user: '1002' }
const mallory: Owner = { group: '/user.slice/user-1001.slice', user: '1001' }
const heuristic: RouteOptions = { patterns: [], unmatched: 'heuristic', maxSegmentCardinality: 10 }

function check(path: string, want: string, options: Partial<RouteOptions> = {}): void {
  assert.equal(new Routes({ ...heuristic, ...options }).route(alice, 'shop', path), want)
}

test('segments that look like identifiers become *', () => {
  check('/users/42', '/users/*')
  check('/users/42/orders/7', '/users/*/orders/*')
  check('/users/9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d', '/users/*')
  check('/users/9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d', '/users/*')
  check('/commit/deadbeef1', '/commit/*')
  check('/commit/3900b9b', '/commit/*')
  check('/v/dQw4w9WgXcQ', '/v/*')
  check('/o/01ARZ3NDEKTSV4RRFFQ69G5FAV', '/o/*')
  check('/s/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9', '/s/*')
  check('/mail/jo@example.com', '/mail/*')
  check('/mail/jo%40example.com', '/mail/*')
  check('/day/2024-01-31', '/day/*')
  check('/day/2024-01-31T10:20:30Z', '/day/*')
  check('/ip/10.0.0.1', '/ip/*')
  check('/orders/order-12345', '/orders/*')
  check('/items/item_42', '/items/*')
  check('/search/hello%20world', '/search/*')
  check(`/blob/${'x'.repeat(65)}`, '/blob/*')
  check(`/token/${'abcdefgh'.repeat(4)}`, '/token/*')
})

test('words of an API stay', () => {
  check('/', '/')
  check('', '/')
  check('/api/v1/users', '/api/v1/users')
  check('/apis/apps/v1beta1/deployments', '/apis/apps/v1beta1/deployments')
  check('/login/oauth2/callback', '/login/oauth2/callback')
  check('/s3/k8s/utf8/md5/sha256', '/s3/k8s/utf8/md5/sha256')
  check('/getUserAccountDetails', '/getUserAccountDetails')
  check('/user-profile/edit_form/part-2', '/user-profile/edit_form/part-2')
  check('/static/app.js', '/static/app.js')
  check('/.well-known/openid-configuration', '/.well-known/openid-configuration')
  check('/feedback/facade/defaced', '/feedback/facade/defaced')
})

test('empty segments and ; parameters do not matter', () => {
  check('//api///users/', '/api/users')
  check('/api;jsessionid=A1B2C3/users;x=1', '/api/users')
})

test('a deep path ends in /** behind ten segments', () => {
  check('/a/b/c/d/e/f/g/h/i/j', '/a/b/c/d/e/f/g/h/i/j')
  check('/a/b/c/d/e/f/g/h/i/j/k', '/a/b/c/d/e/f/g/h/i/j/**')
  check('/a'.repeat(5_000), `${'/a'.repeat(10)}/**`)
})

test('the eleventh word below one prefix folds all words there, and other prefixes stay', () => {
  const routes = new Routes(heuristic)
  for (let i = 0; i < 10; i++) {
    const name = `name${String.fromCharCode(97 + i)}`
    assert.equal(routes.route(alice, 'shop', `/users/${name}/edit`), `/users/${name}/edit`)
  }
  assert.equal(routes.route(alice, 'shop', '/users/eleventh/edit'), '/users/*/edit')
  assert.equal(routes.route(alice, 'shop', '/users/namea/edit'), '/users/*/edit')
  assert.equal(routes.route(alice, 'shop', '/orders/namea'), '/orders/namea')
})

test('identifiers do not count as words', () => {
  const routes = new Routes(heuristic)
  for (let i = 0; i < 1_000; i++) assert.equal(routes.route(alice, 'shop', `/users/${i}`), '/users/*')
  assert.equal(routes.route(alice, 'shop', '/users/me'), '/users/me')
})

test('each service learns by itself', () => {
  const routes = new Routes({ ...heuristic, maxSegmentCardinality: 1 })
  routes.route(alice, 'shop', '/a')
  assert.equal(routes.route(alice, 'shop', '/b'), '/*')
  assert.equal(routes.route(alice, 'cart', '/b'), '/b')
})

test('paths that were not served teach nothing', () => {
  const routes = new Routes(heuristic)
  assert.equal(routes.route(alice, 'shop', '/users/list'), '/users/list')
  for (let i = 0; i < 100; i++) assert.equal(routes.route(alice, 'shop', `/wp-${'x'.repeat(i)}`, false), '/*')
  assert.equal(routes.route(alice, 'shop', '/users/42', false), '/users/*')
  assert.equal(routes.route(alice, 'shop', '/users/list', false), '/users/list')
  assert.equal(routes.route(alice, 'shop', '/orders', false), '/*')
  assert.equal(routes.route(alice, 'shop', '/orders'), '/orders')
  assert.equal(routes.route(alice, 'shop', '/orders', false), '/orders')
})

test('the patterns of the user come first, in their order', () => {
  const patterns = ['/users/me', '/users/{id}', '/files/{path...}', '/shops/:shop/items/*', '/assets/**', '/']
  check('/users/me', '/users/me', { patterns })
  check('/users/alice', '/users/{id}', { patterns })
  check('/users/alice/', '/users/{id}', { patterns })
  check('/files', '/files/{path...}', { patterns })
  check('/files/a/b/c', '/files/{path...}', { patterns })
  check('/shops/1/items/2', '/shops/:shop/items/*', { patterns })
  check('/assets/a/b', '/assets/**', { patterns })
  check('/', '/', { patterns })
  check('/users/alice/edit', '/users/alice/edit', { patterns })
})

test('what becomes of unmatched paths is the choice of the user', () => {
  check('/users/42', '/users/42', { unmatched: 'path' })
  check('/users/42', '/**', { unmatched: 'wildcard' })
  check('/users/42', '', { unmatched: 'unset' })
  check('/users/42', '/users/{id}', { unmatched: 'unset', patterns: ['/users/{id}'] })
})

test('other patterns name what they match, and leave alone what was learned', () => {
  const options = { ...heuristic, maxSegmentCardinality: 2 }
  const routes = new Routes(options)
  const check = (path: string, want: string, served = true) =>
    assert.equal(routes.route(alice, 'shop', path, served), want)
  for (const name of ['ann', 'bob', 'eve']) routes.route(alice, 'shop', `/users/${name}`)
  check('/users/ann', '/users/*')
  check('/orders/open', '/orders/open')
  check('/orders/none', '/orders/*', false)
  routes.change({ ...options, patterns: ['/orders/{state}', '/users/me'] })
  check('/orders/open', '/orders/{state}')
  check('/orders/none', '/orders/{state}', false)
  check('/users/me', '/users/me')
  // Folded before the change: a name that is seen again is no new word.
  check('/users/ann', '/users/*')
  routes.change(options)
  check('/orders/open', '/orders/open')
  check('/users/me', '/users/*')
  routes.change({ ...options, unmatched: 'wildcard' })
  check('/users/ann', '/**')
  routes.change(options)
  check('/users/ann', '/users/*')
  routes.change({ ...options, maxSegmentCardinality: 3 })
  check('/users/ann', '/users/ann')
  // A service that is new since then has the same.
  assert.equal(routes.route(alice, 'other', '/users/ann'), '/users/ann')
})

test('changes make no more routes than one tree may hold', () => {
  const routes = new Routes({ ...heuristic, maxSegmentCardinality: 1_000 })
  const seen = new Set<string>()
  for (let i = 0; i < 20_000; i++) {
    const word = [...String(i)].map(d => String.fromCharCode(97 + Number(d))).join('')
    seen.add(routes.route(alice, 'shop', `/${word.slice(0, 2)}/${word.slice(2)}`))
    if (i % 100 === 0) {
      const patterns = i % 200 === 0 ? ['/ab'] : []
      routes.change({ ...heuristic, maxSegmentCardinality: 1_000, patterns })
    }
  }
  assert.ok(seen.size <= 2_100, `${seen.size} routes`)
})

test('the same requests in the same order give the same routes', () => {
  const word = fc.constantFrom('a', 'b', 'c', 'd', '1', 'x9y8z7', 'users', '%20', '')
  const path = fc.array(word, { maxLength: 12 }).map(words => `/${words.join('/')}`)
  fc.assert(
    fc.property(fc.array(fc.tuple(path, fc.boolean()), { maxLength: 60 }), requests => {
      const options = { ...heuristic, maxSegmentCardinality: 3 }
      const [one, two] = [new Routes(options), new Routes(options)]
      for (const [path, served] of requests)
        assert.equal(one.route(alice, 'shop', path, served), two.route(alice, 'shop', path, served))
    }),
  )
})

test('no flood of words makes more routes than the tree may hold', () => {
  const routes = new Routes({ ...heuristic, maxSegmentCardinality: 1_000 })
  const seen = new Set<string>()
  for (let i = 0; i < 20_000; i++) {
    const word = [...String(i)].map(d => String.fromCharCode(97 + Number(d))).join('')
    seen.add(routes.route(alice, 'shop', `/${word.slice(0, 2)}/${word.slice(2)}`))
  }
  assert.ok(seen.size <= 2_100, `${seen.size} routes`)
})

test('any text is a segment', () => {
  fc.assert(fc.property(fc.string(), text => typeof isIdentifier(text) === 'boolean'))
})

test('an excluded path is exact unless it ends in *', () => {
  const excluded = pathMatcher(['/healthz', '/metrics', '/internal/*', '/debug*'])
  const check = (path: string, want: boolean) => assert.equal(excluded(path), want, path)
  check('/healthz', true)
  check('/healthz/', false)
  check('/healthz2', false)
  check('/metrics', true)
  check('/internal/x/y', true)
  check('/internal', false)
  check('/debugger', true)
  check('', false)
  assert.equal(pathMatcher([])('/'), false)
})

test('long paths are routed as others are, and take no memory', async () => {
  check(`/users/42/${'a'.repeat(300)}`, '/users/*/*')
  const routes = new Routes(heuristic)
  let paths = 0
  const grown = await heapGrowth(() => {
    for (const end = paths + 1_000; paths < end; paths++) {
      // Fresh bytes each time, as they come off the wire; the word is long enough to be a part of its path.
      const path = Buffer.from(`/somewhere-quite-far/${'1'.repeat(8_000)}/${paths}`).toString('latin1')
      assert.equal(routes.route(alice, `service ${paths >> 2}`, path), '/somewhere-quite-far/*/*')
    }
  })
  assert.ok(grown < 500_000, `${grown} bytes`)
  // Used once more, or it would be collected too.
  assert.equal(routes.route(alice, 'service 1', '/somewhere-quite-far'), '/somewhere-quite-far')
})

test('where memory is short known paths are forgotten, and routes stay as they are', () => {
  const routes = new Routes(heuristic)
  const routed = () =>
    Array.from({ length: 400 }, (_, i) => routes.route(alice, `service ${i % 4}`, `/users/${i}`))
  const before = routed()
  const bytes = routes.bytes
  const freed = routes.shed()
  assert.ok(freed > 400 * 160 && freed < bytes, `${freed} of ${bytes}`)
  assert.equal(routes.bytes, bytes - freed)
  assert.deepEqual(routed(), before)
  assert.equal(routes.bytes, bytes)
})

/** A word that looks like no identifier. */
function wordOf(i: number): string {
  return `w${[...String(i)].map(digit => String.fromCharCode(97 + Number(digit))).join('')}`
}

test('what was folded stays folded, whatever other services there are', () => {
  const routes = new Routes(heuristic)
  for (let i = 0; i < 20; i++) routes.route(alice, 'shop', `/p/${wordOf(i)}`)
  for (const owner of [mallory, alice])
    for (let i = 0; i < 3_000; i++)
      for (let word = 0; word < 3; word++) routes.route(owner, `service ${i}`, `/${wordOf(word)}/x`)
  assert.equal(routes.route(alice, 'shop', '/p/wordzz'), '/p/*')
})

test('whoever takes the name of another service does not teach it', () => {
  const routes = new Routes(heuristic)
  assert.equal(routes.route(alice, 'shop', '/p/one'), '/p/one')
  for (let i = 0; i < 20; i++) routes.route(mallory, 'shop', `/p/${wordOf(i)}`)
  assert.equal(routes.route(alice, 'shop', '/p/one'), '/p/one')
})

test('a service has no more routes than its words make, however many others there are', () => {
  const routes = new Routes(heuristic, 200_000)
  const seen = new Set<string>()
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 10; i++)
      for (let j = 0; j < 12; j++) seen.add(routes.route(alice, 'shop', `/${wordOf(i)}/${wordOf(j + round)}`))
    for (let i = 0; i < 400; i++) routes.route(mallory, `service ${i}`, `/${wordOf(round)}/${wordOf(i)}`)
  }
  assert.ok(seen.size <= 10 * (10 + 1), `${seen.size} routes`)
})

test('the words of whoever has many services give way, those of the newest first', () => {
  const routes = new Routes(heuristic, 100_000)
  const learn = (owner: Owner, service: string) => {
    for (const word of ['list', 'show']) routes.route(owner, service, `/orders/${word}`)
  }
  for (let i = 0; i < 1_000; i++) learn(mallory, `service ${i}`)
  assert.ok(routes.losses.refused > 0 && routes.losses.taken === 0)
  assert.equal(routes.route(mallory, 'service 0', '/orders/list'), '/orders/list')
  assert.equal(routes.route(mallory, 'service 999', '/orders/list'), '/*/*')
  for (const service of ['shop', 'cart', 'till']) {
    learn(alice, service)
    assert.equal(routes.route(alice, service, '/orders/list'), '/orders/list')
  }
  assert.ok(routes.losses.taken > 0)
  assert.equal(routes.route(mallory, 'service 0', '/orders/list'), '/orders/list')
  assert.ok(routes.bytes <= 150_000, `${routes.bytes}`)
})

test('a service that nobody asks for is forgotten after an hour', () => {
  const routes = new Routes({ ...heuristic, maxSegmentCardinality: 1 })
  const hour = 3_600_000
  routes.route(alice, 'shop', '/a')
  routes.route(alice, 'cart', '/a')
  routes.expire(0)
  assert.equal(routes.route(alice, 'shop', '/b'), '/*')
  routes.expire(hour / 2)
  routes.expire(hour)
  assert.equal(routes.route(alice, 'shop', '/a'), '/*')
  assert.equal(routes.route(alice, 'cart', '/b'), '/b')
  routes.expire(hour)
  routes.expire(2 * hour)
  assert.equal(routes.bytes, 0)
})

test('no number of owners, services and paths makes it take more than its memory', async () => {
  const routes = new Routes(heuristic, 1_000_000)
  let more = 0
  const flood = () => {
    for (const end = more + 2_000; more < end; more++) {
      const owner = { group: `group ${more % 7}`, user: String(more % 3) }
      for (let i = 0; i < 3; i++) routes.route(owner, `service ${more % 1_000}`, `/${wordOf(more)}/x/${i}`)
    }
  }
  for (let i = 0; i < 4; i++) flood()
  assert.ok(routes.bytes <= 1_500_000 && routes.bytes > 900_000, `${routes.bytes}`)
  const grown = await heapGrowth(flood)
  assert.ok(grown < 200_000, `${grown}`)
})
