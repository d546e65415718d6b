import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../test/helpers/soak.ts'
import { ContainerFiles } from './container-files.ts'

const id = '7d482844a6c8911c57af3ede58c6950215b4c0ce7e635bffe368a656d888b7aa'
const other = '8e482844a6c8911c57af3ede58c6950215b4c0ce7e635bffe368a656d888b7aa'
const image = 'c6bd1ecaeaebfe24269623bedcc17049c9c1b4c8c963d64e913b78e830aaee8d'
const unnamed = {
  id,
  name: '',
  image: '',
  imageId: '',
  labels: new Map(),
  state: '',
  health: '',
  pid: 0,
  podUid: '',
  podContainer: '',
  logPath: '',
}

/** A root of a host with these files. */
function rootWith(t: TestContext, files: Readonly<Record<string, unknown>>): string {
  const root = mkdtempSync(join(tmpdir(), 'svc-container-files-'))
  t.after(() => rmSync(root, { recursive: true }))
  for (const [path, content] of Object.entries(files)) write(root, path, content)
  return root
}

function write(root: string, path: string, content: unknown): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), typeof content === 'string' ? content : JSON.stringify(content))
}

const docker = {
  State: {
    Running: true,
    Paused: false,
    Pid: 9384,
    StartedAt: '2026-11-22T02:48:20Z',
    Health: { Status: 'starting' },
  },
  ID: id,
  Config: {
    Image: 'shop:1.2',
    Labels: { a: 'b', 'io.kubernetes.pod.uid': 'u-1', 'io.kubernetes.container.name': 'c' },
  },
  Image: `sha256:${image}`,
  Name: '/web',
}

test('a container of Docker, with its log once there is one', t => {
  const dir = `/var/lib/docker/containers/${id}`
  const rootfs = rootWith(t, {
    [`${dir}/config.v2.json`]: docker,
    [`${dir}/hostconfig.json`]: { CgroupParent: '/kubepods/burstable/podu-1' },
  })
  const files = new ContainerFiles({ rootfs })
  const found = {
    id,
    runtime: 'docker',
    name: 'web',
    image: 'shop:1.2',
    imageId: `sha256:${image}`,
    labels: new Map(Object.entries(docker.Config.Labels)),
    state: 'running',
    health: 'starting',
    pid: 9384,
    podUid: 'u-1',
    podContainer: 'c',
    logPath: '',
  }
  assert.deepEqual(files.find(id), found)
  write(rootfs, `${dir}/${id}-json.log`, '')
  assert.deepEqual(files.find(id), { ...found, logPath: `${dir}/${id}-json.log` }, 'as the host sees it')
  files.setDockerRoot('/mnt/docker')
  assert.equal(files.find(id), undefined)
  write(rootfs, `/mnt/docker/containers/${id}/config.v2.json`, docker)
  assert.equal(files.find(id)?.name, 'web')
  // Without the control group of a pod, the label is one that an image brought.
  assert.equal(files.find(id)?.podUid, '')
})

test('the flags of Docker become the word that Docker makes of them', t => {
  const path = `/var/lib/docker/containers/${id}/config.v2.json`
  const rootfs = rootWith(t, {})
  const check = (State: unknown, want: string) => {
    write(rootfs, path, { ...docker, State })
    assert.equal(new ContainerFiles({ rootfs }).find(id)?.state, want)
  }
  check({ Running: true, Paused: true }, 'paused')
  check({ Running: true, Restarting: true }, 'restarting')
  check({ RemovalInProgress: true }, 'removing')
  check({ Dead: true }, 'dead')
  check({ StartedAt: '0001-01-01T00:00:00Z' }, 'created')
  check({ StartedAt: '2026-11-22T02:48:20Z', Pid: -1 }, 'exited')
  check(7, '')
})

test('a container of Podman has its names in the list, whose order and neighbours do not matter', t => {
  const storage = '/var/lib/containers/storage/overlay-containers'
  const metadata = JSON.stringify({ 'image-name': 'localhost/shop:1.2', 'image-id': image, name: 'web' })
  const entry = (number: string, name: string) => ({
    id: number,
    names: [name],
    image,
    layer: 'l',
    metadata,
    flags: {},
  })
  const rootfs = rootWith(t, {
    [`${storage}/${id}/userdata/config.json`]: { annotations: { 'io.container.manager': 'libpod' } },
  })
  const files = new ContainerFiles({ rootfs })
  const found = {
    ...unnamed,
    runtime: 'podman',
    name: 'web2',
    image: 'localhost/shop:1.2',
    imageId: `sha256:${image}`,
  }
  assert.deepEqual(files.find(id), { ...unnamed, runtime: 'podman' }, 'without a list')
  const lists = [
    [entry(id, 'web2')],
    [entry(other, 'o'), entry(id, 'web2')],
    [entry(id, 'web2'), entry(other, 'o')],
  ]
  for (const list of lists) {
    write(rootfs, `${storage}/containers.json`, list)
    assert.deepEqual(files.find(id), found)
  }
  write(rootfs, `${storage}/containers.json`, [entry(other, `{"id":"${id}"`)])
  assert.equal(files.find(id)?.name, '', 'a name that looks like a beginning')
  write(rootfs, `${storage}/volatile-containers.json`, [entry(id, 'web2')])
  write(rootfs, `${storage}/${id}/userdata/ctr.log`, '')
  assert.deepEqual(files.find(id), { ...found, logPath: `${storage}/${id}/userdata/ctr.log` })
})

test('a container of CRI-O', t => {
  const storage = '/var/lib/containers/storage/overlay-containers'
  const labels = { tier: 'backend', 'io.kubernetes.container.name': 'redis', 'io.kubernetes.pod.uid': 'u-1' }
  const annotations = {
    'io.container.manager': 'cri-o',
    'io.kubernetes.cri-o.ContainerType': 'container',
    'io.kubernetes.cri-o.Image': 'quay.io/crio/redis:alpine',
    'io.kubernetes.cri-o.ImageName': 'quay.io/crio/redis:alpine',
    'io.kubernetes.cri-o.ImageRef': image,
    'io.kubernetes.cri-o.Labels': JSON.stringify(labels),
    'io.kubernetes.cri-o.LogPath': '/var/log/pods/default_shop_u-1/redis/0.log',
    'io.kubernetes.cri-o.Name': 'k8s_redis_shop_default_u-1_0',
  }
  const rootfs = rootWith(t, { [`${storage}/${id}/userdata/config.json`]: { annotations } })
  const files = new ContainerFiles({ rootfs })
  assert.deepEqual(files.find(id), {
    ...unnamed,
    runtime: 'cri-o',
    name: 'k8s_redis_shop_default_u-1_0',
    image: 'quay.io/crio/redis:alpine',
    imageId: `sha256:${image}`,
    labels: new Map(Object.entries(labels)),
    podUid: 'u-1',
    podContainer: 'redis',
    logPath: '/var/log/pods/default_shop_u-1/redis/0.log',
  })
  const sandbox = {
    ...annotations,
    'io.kubernetes.cri-o.ContainerType': 'sandbox',
    'io.kubernetes.cri-o.Labels': '[',
  }
  write(rootfs, `${storage}/${id}/userdata/config.json`, {
    annotations: { ...sandbox, 'io.kubernetes.container.name': 'POD', 'io.kubernetes.pod.uid': 'u-2' },
  })
  const { podContainer, podUid, labels: none } = files.find(id)!
  assert.deepEqual({ podContainer, podUid, none }, { podContainer: '', podUid: 'u-2', none: new Map() })
})

test('a container of containerd, in the directories of its distributions', t => {
  const annotations = {
    'io.kubernetes.cri.container-name': 'redis',
    'io.kubernetes.cri.container-type': 'container',
    'io.kubernetes.cri.image-name': 'docker.io/library/redis:7',
    'io.kubernetes.cri.sandbox-name': 'shop',
    'io.kubernetes.cri.sandbox-namespace': 'default',
    'io.kubernetes.cri.sandbox-uid': 'u-1',
  }
  const check = (dir: string, written: unknown, want: Record<string, unknown>) => {
    const rootfs = rootWith(t, {
      [`${dir}/${id}/config.json`]: { annotations: written },
      [`${dir}/${id}/init.pid`]: '4711',
    })
    const found = new ContainerFiles({ rootfs }).find(id)
    assert.deepEqual(found, { ...unnamed, runtime: 'containerd', pid: 4711, ...want })
  }
  const labels = new Map([
    ['io.kubernetes.pod.name', 'shop'],
    ['io.kubernetes.pod.namespace', 'default'],
    ['io.kubernetes.container.name', 'redis'],
  ])
  const image = 'docker.io/library/redis:7'
  const want = { name: 'redis', image, labels, podUid: 'u-1', podContainer: 'redis' }
  check('/run/containerd/io.containerd.runtime.v2.task/k8s.io', annotations, want)
  check('/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io', annotations, want)
  check('/run/containerd/io.containerd.runtime.v2.task/default', { 'nerdctl/name': 'web' }, { name: 'web' })
})

test('what cannot be read is not known, and nothing else is read', t => {
  const path = `/var/lib/docker/containers/${id}/config.v2.json`
  const rootfs = rootWith(t, { '/var/lib/docker/secret/config.v2.json': docker })
  const files = new ContainerFiles({ rootfs })
  for (const strange of [
    '',
    '.',
    '../secret',
    `${id}/../../secret`,
    id.toUpperCase(),
    id.slice(1),
    `${id}\n`,
  ])
    assert.equal(files.find(strange), undefined, strange)
  for (const content of ['', '{', '[]', 'null', '7', '{"Name":"/web"', ' '.repeat(2 ** 20 + 1)]) {
    write(rootfs, path, content)
    assert.equal(files.find(id), undefined)
  }
  rmSync(join(rootfs, path))
  mkdirSync(join(rootfs, path))
  assert.equal(files.find(id), undefined, 'a directory')
  rmSync(join(rootfs, path), { recursive: true })
  symlinkSync('/dev/zero', join(rootfs, path))
  assert.equal(files.find(id), undefined, 'a device')
})

test('whatever the files hold, every text is a text', t => {
  const rootfs = rootWith(t, {})
  const files = new ContainerFiles({ rootfs })
  const keys = [
    'io.container.manager',
    'io.kubernetes.cri-o.Labels',
    'io.kubernetes.cri-o.ImageRef',
    'nerdctl/name',
  ]
  const annotations = fc.oneof(
    fc.jsonValue(),
    fc.dictionary(fc.constantFrom(...keys), fc.oneof(fc.jsonValue(), fc.constant('cri-o'))),
  )
  const list = fc.oneof(
    fc.json(),
    fc.jsonValue().map(names => `[{"id":"${id}","names":${JSON.stringify(names)},"image":7}]`),
    fc.string().map(tail => `[{"id":"${id}"${tail}`),
  )
  const storage = '/var/lib/containers/storage/overlay-containers'
  const runs = soak ? 5000 : 200
  fc.assert(
    fc.property(annotations, list, (told, listed) => {
      write(rootfs, `${storage}/${id}/userdata/config.json`, { annotations: told })
      write(rootfs, `${storage}/containers.json`, listed)
      const { labels, pid, ...texts } = files.find(id)!
      for (const text of [...Object.values(texts), ...labels.values()]) assert.equal(typeof text, 'string')
      assert.equal(pid, 0)
    }),
    { numRuns: runs },
  )
})
