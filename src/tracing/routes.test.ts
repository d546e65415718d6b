import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { heapGrowth } from '../../test/helpers/heap.ts'
import { isIdentifier } from './route-segment.ts'
import { pathMatcher, type RouteOptions, Routes } from './routes.ts'

const heuristic: RouteOptions = { patterns: [], unmatched: 'heuristic', maxSegmentCardinality: 10 }

function check(path: string, want: string, options: Partial<RouteOptions> = {}): void {
  assert.equal(new Routes({ ...heuristic, ...options }).route('shop', path), want)
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
    assert.equal(routes.route('shop', `/users/${name}/edit`), `/users/${name}/edit`)
  }
  assert.equal(routes.route('shop', '/users/eleventh/edit'), '/users/*/edit')
  assert.equal(routes.route('shop', '/users/namea/edit'), '/users/*/edit')
  assert.equal(routes.route('shop', '/orders/namea'), '/orders/namea')
})

test('identifiers do not count as words', () => {
  const routes = new Routes(heuristic)
  for (let i = 0; i < 1_000; i++) assert.equal(routes.route('shop', `/users/${i}`), '/users/*')
  assert.equal(routes.route('shop', '/users/me'), '/users/me')
})

test('each service learns by itself', () => {
  const routes = new Routes({ ...heuristic, maxSegmentCardinality: 1 })
  routes.route('shop', '/a')
  assert.equal(routes.route('shop', '/b'), '/*')
  assert.equal(routes.route('cart', '/b'), '/b')
})

test('paths that were not served teach nothing', () => {
  const routes = new Routes(heuristic)
  assert.equal(routes.route('shop', '/users/list'), '/users/list')
  for (let i = 0; i < 100; i++) assert.equal(routes.route('shop', `/wp-${'x'.repeat(i)}`, false), '/*')
  assert.equal(routes.route('shop', '/users/42', false), '/users/*')
  assert.equal(routes.route('shop', '/users/list', false), '/users/list')
  assert.equal(routes.route('shop', '/orders', false), '/*')
  assert.equal(routes.route('shop', '/orders'), '/orders')
  assert.equal(routes.route('shop', '/orders', false), '/orders')
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
    assert.equal(routes.route('shop', path, served), want)
  for (const name of ['ann', 'bob', 'eve']) routes.route('shop', `/users/${name}`)
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
  assert.equal(routes.route('other', '/users/ann'), '/users/ann')
})

test('changes make no more routes than one tree may hold', () => {
  const routes = new Routes({ ...heuristic, maxSegmentCardinality: 1_000 })
  const seen = new Set<string>()
  for (let i = 0; i < 20_000; i++) {
    const word = [...String(i)].map(d => String.fromCharCode(97 + Number(d))).join('')
    seen.add(routes.route('shop', `/${word.slice(0, 2)}/${word.slice(2)}`))
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
        assert.equal(one.route('shop', path, served), two.route('shop', path, served))
    }),
  )
})

test('no flood of words makes more routes than the tree may hold', () => {
  const routes = new Routes({ ...heuristic, maxSegmentCardinality: 1_000 })
  const seen = new Set<string>()
  for (let i = 0; i < 20_000; i++) {
    const word = [...String(i)].map(d => String.fromCharCode(97 + Number(d))).join('')
    seen.add(routes.route('shop', `/${word.slice(0, 2)}/${word.slice(2)}`))
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
      assert.equal(routes.route(`service ${paths >> 2}`, path), '/somewhere-quite-far/*/*')
    }
  })
  assert.ok(grown < 500_000, `${grown} bytes`)
  // Used once more, or it would be collected too.
  assert.equal(routes.route('service 1', '/somewhere-quite-far'), '/somewhere-quite-far')
})

test('where memory is short known paths are forgotten, and routes stay as they are', () => {
  const routes = new Routes(heuristic)
  const routed = () => Array.from({ length: 400 }, (_, i) => routes.route(`service ${i % 4}`, `/users/${i}`))
  const before = routed()
  const bytes = routes.bytes
  assert.ok(bytes > 400 * 160, `${bytes}`)
  const freed = routes.shed(bytes / 3)
  assert.ok(freed >= bytes / 3 && freed < bytes, `${freed} of ${bytes}`)
  routes.shed(bytes)
  assert.ok(routes.bytes < bytes / 10, `${routes.bytes}`)
  assert.deepEqual(routed(), before)
  assert.equal(routes.bytes, bytes)
})
