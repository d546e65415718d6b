import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { matchesPath, pathPatterns } from './path-pattern.ts'

function matches(source: string, path: string): boolean {
  return pathPatterns(source).some(pattern => matchesPath(pattern, path))
}

test('a pattern means what a shell would make of it', () => {
  const check = (source: string, path: string, want: boolean) =>
    assert.equal(matches(source, path), want, `${source} ${path}`)
  check('/var/log/app.log', '/var/log/app.log', true)
  check('/var/log/app.log', '/var/log/app.log.1', false)
  check('/var//log/./app.log', '/var/log/app.log', true)
  check('/var/log/*.log', '/var/log/app.log', true)
  check('/var/log/*.log', '/var/log/a/b.log', false)
  check('/var/log/*.log', '/var/log/.hidden.log', false)
  check('/var/log/.*.log', '/var/log/.hidden.log', true)
  check('/var/log/app?.log', '/var/log/app1.log', true)
  check('/var/log/app?.log', '/var/log/app.log', false)
  check('/var/log/[a-c]*[!0-9]', '/var/log/bxx', true)
  check('/var/log/[a-c]*[!0-9]', '/var/log/bx1', false)
  check('/var/log/[]x]', '/var/log/]', true)
  check('/var/log/[x', '/var/log/[x', true)
  check('/var/**/*.log', '/var/app.log', true)
  check('/var/**/*.log', '/var/a/b/c/app.log', true)
  check('/var/**/*.log', '/var/a/.git/app.log', false)
  check('/var/**', '/var/a/b', true)
  check('/var/**', '/usr/a', false)
  check('/**/b/**/c', '/a/b/x/b/c', true)
  check('/var/{log,spool/{a,b}}/*.log', '/var/spool/b/x.log', true)
  check('/var/{log,spool/{a,b}}/*.log', '/var/spool/x.log', false)
  check('/var/{log', '/var/{log', true)
  check('/var/{log}', '/var/{log}', true)
  check('/var/\\*', '/var/*', true)
  check('/var/\\*', '/var/x', false)
})

test('a pattern that cannot be read says why', () => {
  assert.throws(() => pathPatterns('app.log'), /does not start with "\/"/)
  assert.throws(() => pathPatterns(`/${'{a,b}'.repeat(20)}`), /more than 256 patterns/)
})

test('any text is a pattern, and one without signs means itself', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (text, path) => {
      try {
        matches(`/${text}`, `/${path}`)
      } catch (error) {
        assert.match((error as Error).message, /more than/)
      }
    }),
  )
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z./-]{1,40}$/), text => {
      assert.ok(matches(`/${text}`, `/${text.replaceAll(/(?<=^|\/)\.(?=\/|$)/g, '')}`))
    }),
  )
})

test('a pattern of many stars takes no more time than its length times the path’s', {
  timeout: 20_000,
}, () => {
  assert.ok(!matches(`/${'*a'.repeat(1000)}b`, `/${'a'.repeat(10_000)}`))
  assert.ok(!matches(`${'/**/a'.repeat(200)}/b`, '/a'.repeat(2000)))
})
