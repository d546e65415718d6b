import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findEngines } from './engine-places.ts'

async function host(t: TestContext, ...sockets: string[]): Promise<string> {
  const rootfs = mkdtempSync(join(tmpdir(), 'svc-engines-'))
  t.after(() => rmSync(rootfs, { recursive: true }))
  mkdirSync(join(rootfs, 'run/podman'), { recursive: true })
  mkdirSync(join(rootfs, 'var'))
  symlinkSync('../run', join(rootfs, 'var/run'))
  for (const path of sockets) {
    const server = createServer()
    await new Promise<void>(resolve => server.listen(join(rootfs, path), resolve))
    t.after(() => server.close())
  }
  return rootfs
}

test('the daemon that the environment names is asked first, then each usual socket once', async t => {
  const rootfs = await host(t, 'run/docker.sock', 'run/podman/podman.sock', 'run/mine.sock')
  const check = (DOCKER_HOST: string, want: readonly string[]) => {
    const { places, hint } = findEngines('', rootfs, { DOCKER_HOST })
    assert.deepEqual(
      places.map(({ name }) => name.replace(rootfs, '')),
      want,
    )
    assert.equal(hint, '')
  }
  const usual = ['/run/docker.sock', '/run/podman/podman.sock']
  check('', usual)
  check(`unix://${rootfs}/run/mine.sock`, ['/run/mine.sock', ...usual])
  check(`unix://${rootfs}/var/run/docker.sock`, ['/var/run/docker.sock', '/run/podman/podman.sock'])
  check('tcp://10.0.0.5', ['http://10.0.0.5:2375', ...usual])
  const { places, reason, hint } = findEngines('', rootfs, { DOCKER_HOST: 'unix:///nowhere/docker.sock' })
  assert.equal(places.length, 2)
  assert.equal(reason, 'socket /nowhere/docker.sock from DOCKER_HOST not found')
  assert.equal(hint, 'start Docker or Podman, or correct DOCKER_HOST')
})

test('TLS is as the client of Docker has it', t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-engines-'))
  t.after(() => rmSync(directory, { recursive: true }))
  for (const name of ['cert.pem', 'key.pem']) writeFileSync(join(directory, name), '')
  const check = (address: string, env: Record<string, string>, want: readonly unknown[]) => {
    const { name, tls } = findEngines(address, '/nonexistent', env).places[0]!
    const files = [tls?.caFile, tls?.certFile, tls?.keyFile].map(file => file?.replace(directory, '~'))
    assert.deepEqual([name, ...files, tls?.insecureSkipVerify], want)
  }
  const all = ['~/ca.pem', '~/cert.pem', '~/key.pem']
  const none = [undefined, undefined, undefined, undefined]
  const DOCKER_CERT_PATH = directory
  check('tcp://h', { DOCKER_CERT_PATH }, ['http://h:2375', ...none])
  check('tcp://h', { DOCKER_CERT_PATH, DOCKER_TLS_VERIFY: '1' }, ['https://h:2376', ...all, false])
  check('tcp://h', { DOCKER_CERT_PATH, DOCKER_TLS: '1' }, ['https://h:2376', ...all, true])
  check('http://h:2375', { DOCKER_CERT_PATH, DOCKER_TLS_VERIFY: '0' }, ['https://h:2375', ...all, false])
  check('https://h', { DOCKER_CERT_PATH }, ['https://h:443', ...all, false])
  check('https://h', {}, ['https://h:443', '', '', '', false])
  const own = { DOCKER_CONFIG: directory, DOCKER_TLS_VERIFY: 'yes' }
  check('tcp://h', own, ['https://h:2376', '', '~/cert.pem', '~/key.pem', false])
})
