// owns: host
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Containerd, containerdOf, withoutContainerd } from '../../../../test/helpers/containerd.ts'
import { until } from '../../../../test/helpers/program.ts'
import { ReportedContainers } from '../../../../test/helpers/reported-containers.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import { onlyInSoak } from '../../../../test/helpers/soak.ts'
import { ContainerFiles } from '../container-files/container-files.ts'
import { ContainerdSource } from './containerd-source.ts'

const idOf = (digit: string) => digit.repeat(64)

test('a real containerd', { skip: withoutContainerd }, t => followed(t))

for (const suite of ['trixie', 'sid'])
  test(`a real containerd of ${suite}`, { skip: withoutContainerd || onlyInSoak }, async t => {
    const programs = containerdOf(suite)
    if (programs === undefined)
      t.skip(`the package containerd of ${suite} is not there, or does not run here`)
    else await followed(t, programs)
  })

async function followed(t: TestContext, programs?: string): Promise<void> {
  const containerd = await Containerd.start(['default', 'k8s.io', 'moby'], programs)
  t.after(() => containerd.stop())
  const told = new ReportedContainers()
  const web = idOf('a')
  await containerd.container('default', web, ['nerdctl/name=web', 'team=shop'])
  await containerd.container('moby', idOf('d'), ['team=docker'])
  const source = new ContainerdSource({
    socketPath: containerd.socket,
    isBeside: () => false,
    sink: told,
    log: silentLogger,
  })
  t.after(() => source.stop())
  source.start()
  const becomes = (what: string, test: () => boolean) =>
    until(
      () => `${what}; ${JSON.stringify(source.state)} ${JSON.stringify([...told.last.values()])}`,
      30_000,
      test,
    )

  await t.test('tells of what was there before, and leaves Docker its own', async () => {
    await becomes('web is told', () => told.present.has(web))
    const { pid, labels, ...rest } = told.present.get(web)!
    assert.ok(pid > 1)
    assert.equal(labels.get('team'), 'shop')
    assert.deepEqual(rest, {
      id: web,
      runtime: 'containerd',
      name: 'web',
      image: 'svc.test/shop:1.2',
      imageId: '',
      state: 'running',
      health: '',
      podUid: '',
      podContainer: '',
      logPath: '',
    })
    const { version, ...state } = source.state
    assert.match(version, /^v?\d+\.\d+/)
    assert.deepEqual(state, {
      connected: true,
      reason: '',
      hint: '',
      runtime: 'containerd',
      endpoint: containerd.socket,
      rootDir: '',
      containers: 1,
    })
  })

  await t.test('tells of what happens to a container', async () => {
    const id = idOf('b')
    await containerd.container('default', id, ['nerdctl/name=mill'])
    await becomes('it runs', () => told.named('mill')?.state === 'running')
    await containerd.ctr('default', 'tasks', 'pause', id)
    await becomes('it is paused', () => told.present.get(id)?.state === 'paused')
    await containerd.ctr('default', 'tasks', 'resume', id)
    await becomes('it runs again', () => told.present.get(id)?.state === 'running')
    await containerd.ctr('default', 'containers', 'label', id, 'team=cart')
    await becomes('it has another label', () => told.present.get(id)?.labels.get('team') === 'cart')
    await containerd.ctr('default', 'tasks', 'kill', '--signal', 'SIGKILL', id)
    await becomes('it has ended', () => told.present.get(id)?.pid === 0)
    await containerd.remove('default', id)
    await becomes('it is gone', () => !told.present.has(id))
  })

  await t.test('tells of a pod that the CRI runs what the kubelet and the runtime know', async () => {
    const uid = '0c3ba2f1-5a3e-4a57-b9c1-52d3a8f1f0aa'
    const pod = { name: 'shop-1', namespace: 'store', uid }
    const { sandbox, id } = await containerd.pod(pod, 'cart', { tier: 'backend' })
    await becomes('it runs', () => told.present.get(id)?.state === 'running' && told.present.has(sandbox))
    const { labels, imageId, name, image, podUid, podContainer } = told.present.get(id)!
    assert.deepEqual(
      { name, image, podUid, podContainer },
      { name: 'cart', image: 'svc.test/shop:1.2', podUid: uid, podContainer: 'cart' },
    )
    assert.match(imageId, /^sha256:[0-9a-f]{64}$/)
    const wanted = ['tier', 'io.kubernetes.pod.name', 'io.kubernetes.pod.namespace', 'org.example.image']
    assert.deepEqual(
      wanted.map(label => labels.get(label)),
      ['backend', 'shop-1', 'store', 'yes'],
    )
    assert.equal(told.present.get(sandbox)?.podUid, uid)
    assert.equal(told.present.get(sandbox)?.podContainer, '')
    // What its files tell before is the same as far as it goes, so that its resource stays.
    const file = new ContainerFiles({ bundleRoots: [containerd.bundles] }).find(id)!
    for (const key of ['name', 'image', 'podUid', 'podContainer', 'runtime', 'pid'] as const)
      assert.equal(file[key], told.present.get(id)![key], key)
    for (const [label, value] of file.labels) assert.equal(labels.get(label), value, label)
    await containerd.endPod(sandbox)
    await becomes('both are gone', () => !told.present.has(id) && !told.present.has(sandbox))
  })

  await t.test('finds a daemon again that was killed, and loses and doubles none', async () => {
    await containerd.end('SIGKILL')
    await until('the loss is known', 30_000, () => !source.state.connected)
    assert.match(source.state.reason, /lost|nothing listens/)
    assert.match(source.state.hint, /^start containerd again/)
    assert.deepEqual([...told.present.keys()], [web], 'what was known is kept')
    await containerd.run()
    const late = idOf('c')
    await containerd.container('default', late, ['nerdctl/name=late'])
    await becomes('late is told', () => told.named('late')?.state === 'running')
    assert.deepEqual([...told.present.keys()].sort(), [web, late].sort())
    await containerd.remove('default', web)
    await becomes('web is gone', () => !told.present.has(web))
    source.stop()
    assert.equal(told.present.size, 0, 'nobody follows them any more')
  })
}
