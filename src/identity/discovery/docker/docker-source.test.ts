// owns: host
import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificates } from '../../../../test/helpers/certificates.ts'
import { Dockerd, withoutDocker } from '../../../../test/helpers/dockerd.ts'
import { freePort, pause, until } from '../../../../test/helpers/program.ts'
import { ReportedContainers } from '../../../../test/helpers/reported-containers.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import type { Container } from '../../../foundation/model/entity.ts'
import { ContainerFiles } from '../container-files/container-files.ts'
import { DockerSource } from './docker-source.ts'

test('a Docker daemon', { skip: withoutDocker }, async t => {
  const certificates = makeCertificates()
  const file = (name: string) => certificates.file(name)
  const port = await freePort()
  const tls = ['--tlscacert', file('ca.pem'), '--tlscert', file('server.pem'), '--tlskey', file('server.key')]
  const dockerd = await Dockerd.start(['-H', `tcp://127.0.0.1:${port}`, '--tlsverify', ...tls])
  t.after(async () => {
    await dockerd.stop()
    certificates.remove()
  })
  const told = new ReportedContainers()
  const early = await dockerd.container('early', ['--label', 'team=shop'])
  const source = new DockerSource({ endpoint: `unix://${dockerd.socket}`, sink: told, log: silentLogger })
  t.after(() => source.stop())
  source.start()
  const files = new ContainerFiles({ dockerRoot: dockerd.root })
  const becomes = (what: string, test: () => boolean) =>
    until(() => `${what}; told: ${JSON.stringify([...told.present.values()])}`, 30_000, test)

  await t.test('tells of what was there before', async () => {
    await becomes('early is told', () => told.named('early') !== undefined)
    const { pid, imageId, ...rest } = told.present.get(early)!
    assert.ok(pid > 1)
    assert.match(imageId, /^sha256:[0-9a-f]{64}$/)
    assert.deepEqual(rest, {
      id: early,
      runtime: 'docker',
      name: 'early',
      image: 'shop:1.2',
      labels: new Map([['team', 'shop']]),
      state: 'running',
      health: '',
      podUid: '',
      podContainer: '',
      logPath: `${dockerd.root}/containers/${early}/${early}-json.log`,
    })
    assert.deepEqual(files.find(early), told.present.get(early))
    await becomes('the root is known', () => source.state.rootDir !== '')
    const { version, ...state } = source.state
    assert.match(version, /^\d+\.\d+/)
    assert.deepEqual(state, {
      connected: true,
      reason: '',
      hint: '',
      runtime: 'docker',
      endpoint: dockerd.socket,
      rootDir: dockerd.root,
      containers: 1,
    })
  })

  await t.test('at a port it trusts and is trusted as the client of Docker is, or says why not', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'svc-docker-tls-'))
    t.after(() => rmSync(directory, { recursive: true }))
    const check = async (who: string, env: Record<string, string>, want: RegExp) => {
      const far = new ReportedContainers()
      if (who !== '') {
        copyFileSync(file('ca.pem'), join(directory, 'ca.pem'))
        copyFileSync(file(`${who}.pem`), join(directory, 'cert.pem'))
        copyFileSync(file(`${who}.key`), join(directory, 'key.pem'))
      }
      const given = { DOCKER_HOST: `tcp://127.0.0.1:${port}`, DOCKER_CERT_PATH: directory, ...env }
      const options = { endpoint: '', rootfs: directory, env: given }
      const asked = new DockerSource({ ...options, sink: far, log: silentLogger })
      asked.start()
      const says = () => {
        const { connected, endpoint, reason, hint } = asked.state
        return connected && far.present.size > 0 ? `answers at ${endpoint}` : reason && `${reason}; ${hint}`
      }
      try {
        await until(`${who} ${JSON.stringify(env)} settles`, 30_000, () => says() !== '')
        assert.match(says(), want)
        if (far.present.size > 0) assert.equal(far.present.get(early)!.logPath, '')
      } finally {
        asked.stop()
      }
    }
    const verify = { DOCKER_TLS_VERIFY: '1' }
    await check('client', verify, /^answers at https:\/\/127\.0\.0\.1:\d+$/)
    await check('client', { DOCKER_TLS: '1' }, /^answers at https/)
    await check('client', {}, /HTTP 400 .*DOCKER_TLS_VERIFY/s)
    await check('other', verify, /cannot connect to the daemon .* over TLS: .*DOCKER_CERT_PATH/s)
    await check('', { ...verify, DOCKER_CERT_PATH: '/nowhere' }, /cannot read ca_file \/nowhere\/ca\.pem/)
    copyFileSync(file('stranger.pem'), join(directory, 'ca.pem'))
    await check('', verify, /cannot connect to the daemon .* over TLS: .*CA/s)
  })

  await t.test('tells of what happens to a container', async () => {
    const id = await dockerd.container('web', ['--health-cmd', 'test ! -e /ill', '--health-interval', '1s'])
    await becomes('it runs', () => told.named('web')?.state === 'running')
    await becomes('it is healthy', () => told.named('web')?.health === 'healthy')
    await dockerd.docker('exec', id, 'touch', '/ill')
    await becomes('it is ill', () => told.named('web')?.health === 'unhealthy')
    await dockerd.docker('rename', 'web', 'shop')
    await becomes('it has another name', () => told.present.get(id)?.name === 'shop')
    assert.equal(files.find(id)?.name, 'shop')
    await dockerd.docker('pause', id)
    await becomes('it is paused', () => told.present.get(id)?.state === 'paused')
    assert.equal(files.find(id)?.state, 'paused')
    await dockerd.docker('unpause', id)
    await dockerd.docker('kill', id)
    await becomes('it has ended', () => told.present.get(id)?.state === 'exited')
    assert.equal(told.present.get(id)?.pid, 0)
    assert.equal(files.find(id)?.state, 'exited')
    await dockerd.docker('rm', id)
    await becomes('it is gone', () => !told.present.has(id))
    assert.equal(files.find(id), undefined)
  })

  await t.test('tells of each of many that live for a moment, and the files know each of them', async () => {
    const count = soak ? 50 : 10
    const found = new Map<string, Container>()
    const names = Array.from({ length: count }, (_, number) => `moment-${number}`)
    let running = 2
    const lookers = Array.from({ length: running }, async () => {
      for (let name = names.shift(); name !== undefined; name = names.shift()) {
        // So long that this program, which may be held up, sees it.
        const moment = ['sh', '-c', 'cat /proc/self/cgroup; sleep 0.3']
        const args = ['--rm', '--net', 'none', '--name', name, 'shop:1.2', ...moment]
        const id = /[0-9a-f]{64}/.exec(await dockerd.docker('run', ...args))?.[0]
        assert.ok(id !== undefined, 'a container knows its own control group')
        ids.add(id)
      }
      running--
    })
    const ids = new Set<string>()
    // As the agent does it: a number is seen in a control group, and looked for at once.
    while (running > 0) {
      for (const id of controlGroups()) {
        const container = found.has(id) ? undefined : files.find(id)
        if (container !== undefined) found.set(id, container)
      }
      await pause(5)
    }
    await Promise.all(lookers)
    assert.equal(ids.size, count)
    await becomes('all are gone', () => [...ids].every(id => told.last.has(id) && !told.present.has(id)))
    for (const id of ids) {
      assert.match(told.last.get(id)?.name ?? '', /^moment-\d+$/)
      assert.match(found.get(id)?.name ?? '', /^moment-\d+$/, `${id} was found while it lived`)
      assert.equal(found.get(id)?.image, 'shop:1.2')
    }
  })

  await t.test('finds a daemon again that was killed, and loses and doubles none', async () => {
    const doomed = await dockerd.container('doomed')
    await becomes('doomed is told', () => told.named('doomed') !== undefined)
    await dockerd.end('SIGKILL')
    await until('the loss is known', 30_000, () => !source.state.connected)
    assert.match(source.state.reason, /lost|nothing listens/)
    assert.notEqual(source.state.hint, '')
    assert.deepEqual([...told.present.keys()].sort(), [early, doomed].sort(), 'what was known is kept')
    await dockerd.run()
    await dockerd.docker('rm', '-f', doomed)
    const late = await dockerd.container('late')
    await becomes('late is told', () => told.named('late')?.state === 'running')
    await becomes('doomed is gone', () => !told.present.has(doomed))
    await becomes('early ended with its daemon', () => told.named('early')?.state === 'exited')
    assert.deepEqual([...told.present.keys()].sort(), [early, late].sort())
    assert.deepEqual([source.state.connected, source.state.reason], [true, ''])
  })

  await t.test('finds out at the next connection what went away in between', async () => {
    await dockerd.docker('rm', early)
    await becomes('early is gone', () => !told.present.has(early))
    const late = told.named('late')!.id
    source.stop()
    assert.equal(source.state.connected, false)
    assert.equal(told.present.size, 0, 'nobody follows them any more')
    const again = new DockerSource({ endpoint: dockerd.socket, sink: told, log: silentLogger })
    t.after(() => again.stop())
    again.start()
    await until('it is connected', 30_000, () => again.state.containers === 1)
    await dockerd.restart()
    await dockerd.docker('start', late)
    await becomes('late runs again', () => told.present.get(late)?.state === 'running')
    assert.equal(again.state.containers, 1)
  })
})

/** The numbers in the control groups of Docker. */
function controlGroups(): string[] {
  const docker = existsSync('/sys/fs/cgroup/cgroup.procs')
    ? '/sys/fs/cgroup/docker'
    : '/sys/fs/cgroup/memory/docker'
  try {
    return readdirSync(docker).filter(name => /^[0-9a-f]{64}$/.test(name))
  } catch {
    return [] // There was no container yet.
  }
}
