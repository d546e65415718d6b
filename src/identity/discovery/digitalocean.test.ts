import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  firmware,
  machines,
  readCloud,
  startMetadataService,
} from '../../../test/helpers/metadata-services.ts'
import { digitalocean } from './digitalocean.ts'

test('a droplet is told by its vendor', () => {
  assert.equal(digitalocean.recognise(firmware(machines.digitalocean)), true)
  assert.equal(digitalocean.recognise(firmware({ product_name: 'Droplet' })), false)
})

test('what a droplet is told of itself is read, as an object or in a list as its documentation has it', async t => {
  const service = await startMetadataService('digitalocean')
  t.after(service.stop)
  const want = {
    provider: 'digitalocean',
    platform: 'digitalocean_droplet',
    region: 'nyc3',
    zone: '',
    account: '',
    resourceId: 'do:droplet:2756294',
    instanceId: '2756294',
    instanceName: 'shop-1',
    instanceType: '',
    imageId: '',
  }
  assert.deepEqual(await readCloud(digitalocean, service.endpoint), want)
  service.document = JSON.stringify([{ droplet_id: 2756294, hostname: 'shop-1', region: 'nyc3' }])
  assert.deepEqual(await readCloud(digitalocean, service.endpoint), want)
})
