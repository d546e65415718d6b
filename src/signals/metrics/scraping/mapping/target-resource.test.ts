import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Attributes } from '../../../../foundation/model/attributes.ts'
import type { ScrapeJob } from '../scrape-job.ts'
import type { Target } from '../target.ts'
import { targetResource } from './target-resource.ts'

function target(
  url: string,
  labels: Record<string, string> = { job: 'api', instance: '10.0.0.1:80' },
): Target {
  return {
    job: { name: 'configured' } as ScrapeJob,
    id: 'x',
    url,
    labels: new Map(Object.entries(labels)),
    discovered: new Map(),
    intervalMs: 1000,
    timeoutMs: 1000,
  }
}

const own = { job: '', instance: '' }
const api = { 'service.name': 'api', 'service.instance.id': '10.0.0.1:80' }

test('a target is its job and instance, and where its page was found', () => {
  const check = (url: string, want: Record<string, string | number>) =>
    assert.deepEqual(targetResource(target(url)).attributes.toObject(), { ...api, ...want })
  const at = (address: string, port: number, scheme: string) => ({
    'server.address': address,
    'server.port': port,
    'url.scheme': scheme,
  })
  check('http://10.0.0.1:9100/metrics', at('10.0.0.1', 9100, 'http'))
  check('http://example.org/metrics', at('example.org', 80, 'http'))
  check('https://example.org/metrics?a=b', at('example.org', 443, 'https'))
  check('https://example.org:80/', at('example.org', 80, 'https'))
  check('http://[2001:db8::1]:9100/metrics', at('2001:db8::1', 9100, 'http'))
  check('unix:/run/app.sock:/metrics', { 'server.address': '/run/app.sock', 'url.scheme': 'http' })
  check('nonsense', {})
})

test('without labels it is called as its job is configured, and by its address', () => {
  const { attributes } = targetResource(target('http://a:1/metrics', {}))
  assert.equal(attributes.get('service.name'), 'configured')
  assert.equal(attributes.get('service.instance.id'), 'http://a:1/metrics')
})

test('metrics of another job that a page tells of are of that one', () => {
  const { attributes } = targetResource(target('http://a:1/federate'), [], { job: 'other', instance: 'b:2' })
  assert.equal(attributes.get('service.name'), 'other')
  assert.equal(attributes.get('service.instance.id'), 'b:2')
  assert.equal(attributes.get('server.address'), 'a')
  const half = targetResource(target('http://a:1/federate'), [], { job: 'other', instance: '' })
  assert.equal(half.attributes.get('service.instance.id'), '10.0.0.1:80')
})

test('what a target tells of itself is taken as it is, but for who it is', () => {
  const labels = Attributes.of({
    host_name: 'h',
    'server.address': 'told',
    'service.version': '1',
    'service.name': 'mine',
    'service.instance.id': 'mine',
  })
  const { attributes } = targetResource(target('http://a:1/metrics'), [{ identity: own, labels }])
  assert.deepEqual(attributes.toObject(), {
    ...api,
    'server.address': 'told',
    'server.port': 1,
    'url.scheme': 'http',
    host_name: 'h',
    'service.version': '1',
  })
})

test('what is told of one job is not told of another', () => {
  const infos = [
    { identity: { job: 'api', instance: '10.0.0.1:80' }, labels: Attributes.of({ v: 'own' }) },
    { identity: { job: 'other', instance: 'b:2' }, labels: Attributes.of({ v: 'other' }) },
  ]
  const about = (identity?: { job: string; instance: string }) =>
    targetResource(target('http://a:1/federate'), infos, identity).attributes.get('v')
  assert.equal(about(), 'own')
  assert.equal(about(own), 'own')
  assert.equal(about({ job: 'other', instance: 'b:2' }), 'other')
  assert.equal(about({ job: 'third', instance: 'b:2' }), undefined)
})

test('a host is told where it is known, and says less than the target', () => {
  const host = Attributes.of({ 'host.name': 'h', 'server.address': 'no', 'service.name': 'no' })
  const { attributes } = targetResource(target('http://a:1/metrics'), [], own, host)
  assert.equal(attributes.get('host.name'), 'h')
  assert.equal(attributes.get('server.address'), 'a')
  assert.equal(attributes.get('service.name'), 'api')
})

test('the target stays as it was', () => {
  const labels = Attributes.of({ v: '1' })
  const info = [{ identity: own, labels }]
  const one = target('http://a:1/metrics')
  assert.notEqual(targetResource(one, info), targetResource(one, info))
  assert.deepEqual(targetResource(one, info), targetResource(one, info))
  assert.deepEqual(labels.toObject(), { v: '1' })
})
