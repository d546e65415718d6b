import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { FakeContainerd } from '../../../test/helpers/fake-containerd.ts'
import { KubernetesApi, podObject } from '../../../test/helpers/kubernetes-api.ts'
import { type Config, defaults, loadConfig } from '../../config/index.ts'
import { outcomeOf } from '../../kernel/need.ts'
import type { Check } from './check.ts'
import { cluster, containerRuntime } from './discovery.ts'

type Discovery = Config['agent']['discovery']

function directory(t: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), 'svc-doctor-discovery-'))
  t.after(() => rmSync(made, { recursive: true }))
  return made
}

async function check(
  row: Check,
  { rootfs = '/nonexistent', ...change }: Partial<Discovery> & { rootfs?: string },
  want: string | readonly string[],
  detail: RegExp,
  timeoutMs = 20_000,
): Promise<void> {
  const config = defaults()
  const { agent } = config
  const { nodeexporter } = agent
  const loaded = {
    ...loadConfig({ explicit: false, env: {}, cwd: tmpdir(), systemFile: '/nonexistent' }),
    config: {
      ...config,
      agent: {
        ...agent,
        discovery: { ...agent.discovery, ...change },
        nodeexporter: { ...nodeexporter, path: { ...nodeexporter.path, rootfs } },
      },
    },
  }
  const found = (await row.try({ loaded, timeoutMs })).map(finding => outcomeOf(row, finding))
  assert.deepEqual(
    found.map(({ state, fault }) => fault ?? state),
    [want].flat(),
    JSON.stringify(found),
  )
  assert.match(found[0]!.detail, detail)
}

async function listen(t: TestContext, server: Server, path: string): Promise<void> {
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.after(() => server.close())
}

function kubeconfig(t: TestContext, port: number): string {
  const path = join(directory(t), 'config')
  const document = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'lab' } }],
    clusters: [{ name: 'lab', cluster: { server: `http://127.0.0.1:${port}` } }],
  }
  writeFileSync(path, JSON.stringify(document))
  return path
}

test('a container runtime is looked for below the root of the host', async t => {
  const rootfs = directory(t)
  mkdirSync(join(rootfs, 'run'))
  const before = process.env.DOCKER_HOST
  delete process.env.DOCKER_HOST
  t.after(() => {
    if (before !== undefined) process.env.DOCKER_HOST = before
  })
  await check(
    containerRuntime,
    { rootfs },
    'absent',
    /^no Docker or Podman socket found; no containerd socket found$/,
  )
  const answers = (url: string) => {
    if (url === '/version') return '{"ApiVersion":"1.41","Version":"20.10"}'
    return url.includes('/containers/json') ? '[]' : undefined
  }
  const daemon = createHttpServer(({ url = '' }, answer) => {
    const text = answers(url)
    if (text === undefined) answer.flushHeaders()
    else answer.end(text)
  })
  t.after(() => daemon.closeAllConnections())
  await listen(t, daemon, join(rootfs, 'run/docker.sock'))
  await check(containerRuntime, { rootfs }, 'ok', /^docker 20\.10 answers at .*\/run\/docker\.sock$/)
})

test('containerd is a runtime of its own, and an address that cannot be asked is told beside it', async t => {
  const containerd = await FakeContainerd.start()
  t.after(() => containerd.close())
  const { rootfs, socket } = containerd
  const before = process.env.DOCKER_HOST
  process.env.DOCKER_HOST = ''
  t.after(() => {
    if (before === undefined) delete process.env.DOCKER_HOST
    else process.env.DOCKER_HOST = before
  })
  const answers = new RegExp(`^containerd 1\\.6\\.20 answers at ${socket}$`)
  await check(containerRuntime, { rootfs }, ['ok'], answers)
  process.env.DOCKER_HOST = 'ssh://far'
  await check(containerRuntime, { rootfs }, ['ok', 'silent'], answers)
  const { docker } = defaults().agent.discovery
  await check(
    containerRuntime,
    { rootfs, docker: { ...docker, endpoint: `unix://${socket}` } },
    ['ok'],
    answers,
  )
})

test('a daemon or an API server that hangs is there, and does not answer', async t => {
  const path = join(directory(t), 'docker.sock')
  await listen(
    t,
    createServer(socket => socket.on('error', () => undefined)),
    path,
  )
  const { docker } = defaults().agent.discovery
  await check(
    containerRuntime,
    { docker: { ...docker, endpoint: path } },
    'silent',
    /^no answer within 1000 ms$/,
    1000,
  )
  const api = await KubernetesApi.start()
  t.after(() => api.close())
  api.conduct.answer = () => true
  const { kubernetes } = defaults().agent.discovery
  const asked = { kubernetes: { ...kubernetes, kubeconfig: kubeconfig(t, api.port), node_name: 'node-a' } }
  await check(cluster, asked, 'silent', /^no answer within 1000 ms$/, 1000)
})

test('a cluster is well only when all that is asked for is granted', async t => {
  const api = await KubernetesApi.start()
  t.after(() => api.close())
  api.put('pods', podObject({ name: 'cart' }))
  const { kubernetes } = defaults().agent.discovery
  const asked = { kubernetes: { ...kubernetes, kubeconfig: kubeconfig(t, api.port), node_name: 'node-a' } }
  await check(cluster, asked, 'ok', /^1 pods of node node-a are being watched$/)
  api.conduct.forbidden.add('get namespaces')
  await check(cluster, asked, 'silent', /is not allowed to get namespaces \(403\)/)
})
