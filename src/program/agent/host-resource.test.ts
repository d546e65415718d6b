import assert from 'node:assert/strict'
import { hostname, uptime } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { treeOf } from '../../../test/helpers/collector.ts'
import type { Cloud } from '../../foundation/model/entity.ts'
import { noPlace } from '../../identity/entities/container-place.ts'
import { Entities } from '../../identity/entities/entities.ts'
import { bootTimeUs, HostEntity, hostResource } from './host-resource.ts'

test('the host tells who it is by its own files', t => {
  const root = treeOf(t, {
    'rootfs/etc/machine-id': '0123456789abcdef0123456789abcdef\n',
    'rootfs/usr/lib/os-release': 'NAME="Some Linux"\nVERSION_ID=13\nPRETTY_NAME=\'Some Linux 13\'\n',
  })
  const added = { 'deployment.environment.name': 'test', 'service.name': 'svc' }
  const found = hostResource(join(root, 'rootfs'), added).attributes.toObject()
  const { 'host.arch': arch, ...others } = found
  assert.match(String(arch), /^(amd64|arm64|x86|arm32|ppc64|s390x|riscv64)$/)
  assert.deepEqual(others, {
    'host.name': hostname(),
    'host.id': '0123456789abcdef0123456789abcdef',
    'os.type': 'linux',
    'os.name': 'Some Linux',
    'os.version': '13',
    'os.description': 'Some Linux 13',
    'deployment.environment.name': 'test',
  })
})

test('a host without these files has the rest', t => {
  const root = treeOf(t, { 'rootfs/etc/machine-id': 'uninitialized\n' })
  const keys = Object.keys(hostResource(join(root, 'rootfs'), {}).attributes.toObject())
  assert.deepEqual(keys, ['host.name', 'host.arch', 'os.type'])
})

const cloud: Cloud = {
  provider: 'aws',
  platform: 'aws_ec2',
  region: 'eu-central-1',
  zone: '',
  account: '',
  resourceId: '',
  instanceId: 'i-1',
  instanceName: '',
  instanceType: '',
  imageId: '',
}

test('what an operator wants on the host is stronger than what its cloud tells, which is stronger than its files', t => {
  const root = treeOf(t, { 'rootfs/etc/machine-id': '0123456789abcdef0123456789abcdef\n' })
  const entities = new Entities()
  const base = hostResource(join(root, 'rootfs'), { 'cloud.region': 'ours', 'service.name': 'svc' })
  const host = new HostEntity(base, () => entities.surroundings(noPlace))
  const first = host.resource
  assert.equal(host.resource, first)
  entities.cluster('u', 'a cluster is nothing of the host')
  assert.equal(host.resource, first)
  entities.cloud(cloud)
  const found = host.resource.attributes
  assert.deepEqual(
    ['cloud.provider', 'cloud.region', 'host.id', 'service.name'].map(key => found.get(key)),
    ['aws', 'ours', 'i-1', undefined],
  )
  // Everything is described anew, and nothing is another.
  entities.configure({})
  assert.equal(host.resource.attributes, found)
})

test('the host keeps its resource when what surrounds it is told by another object', () => {
  let by = new Entities().surroundings(noPlace)
  const host = new HostEntity(hostResource('/nowhere', {}), () => by)
  const first = host.resource
  by = new Entities().surroundings(noPlace)
  assert.equal(host.resource, first)
})

test('the time of the boot is that of the host, or what its clock says', t => {
  const root = treeOf(t, { 'proc/stat': 'cpu 1 2 3\nbtime 1700000000\nprocesses 4\n' })
  assert.equal(bootTimeUs(join(root, 'proc')), 1_700_000_000_000_000)
  const booted = (Date.now() / 1000 - uptime()) * 1e6
  assert.ok(Math.abs(bootTimeUs(join(root, 'nothing')) - booted) < 5e6)
})
