import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { stringify } from 'yaml'
import { makeCertificates } from '../../../../test/helpers/certificates.ts'
import {
  KubernetesApi,
  type KubernetesApiOptions,
  podObject,
} from '../../../../test/helpers/kubernetes-api.ts'
import { until } from '../../../../test/helpers/program.ts'
import { AccessError } from './access.ts'
import { Credentials } from './credentials.ts'
import { findAccess } from './find-access.ts'
import { parseKubeconfig } from './kubeconfig.ts'
import { KubernetesSource, type KubernetesSourceOptions } from './kubernetes-source.ts'

const waitMs = 20_000
const directory = mkdtempSync(join(tmpdir(), 'svc-kubernetes-access-'))
const certificates = makeCertificates()
after(() => {
  rmSync(directory, { recursive: true })
  certificates.remove()
})

const timing = { credentialsMs: 200, backoff: { initialMs: 20, maxMs: 100, multiplier: 2, jitter: 0.5 } }
const tls = { cert: certificates.text('server.pem'), key: certificates.text('server.key') }

/** What the kubelet gives to a pod. */
function account(token: string, ca = certificates.text('ca.pem')): string {
  const path = mkdtempSync(join(directory, 'account-'))
  writeFileSync(join(path, 'token'), token)
  writeFileSync(join(path, 'ca.crt'), ca)
  writeFileSync(join(path, 'namespace'), 'monitoring\n')
  return path
}

async function run(
  server: KubernetesApiOptions,
  options: (api: KubernetesApi) => Partial<KubernetesSourceOptions>,
  use: (context: {
    api: KubernetesApi
    source: KubernetesSource
    pods: string[]
    warnings: string[]
  }) => Promise<void>,
): Promise<void> {
  const api = await KubernetesApi.start(server)
  api.put('pods', podObject({ name: 'a' }))
  const pods: string[] = []
  const warnings: string[] = []
  const source = new KubernetesSource({
    kubeconfig: '',
    nodeName: 'node-a',
    namespaces: [],
    labels: [],
    annotations: [],
    sink: {
      container: () => undefined,
      containerGone: () => undefined,
      cloud: () => undefined,
      cluster: () => undefined,
      pod: ({ name }) => pods.push(name),
      podGone: () => undefined,
    },
    warn: (reason, hint) => warnings.push(`${reason}; ${hint}`),
    environment: { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT_HTTPS: String(api.port) },
    timing,
    ...options(api),
  })
  source.start()
  try {
    await use({ api, source, pods, warnings })
  } finally {
    source.stop()
    await api.close()
  }
}

test('a pod asks with the account that it was given, over TLS', () => {
  const serviceAccountDirectory = account('s3cret\n')
  return run(
    { tls },
    () => ({ serviceAccountDirectory }),
    async ({ api, source, pods, warnings }) => {
      api.conduct.token = 's3cret'
      await until('the pod is told', waitMs, () => pods.length === 1)
      assert.equal(source.state.inCluster, true)
      assert.equal(source.state.namespace, 'monitoring')
      // The kubelet renews the token, and the old one ends.
      api.conduct.token = 'renewed'
      writeFileSync(join(serviceAccountDirectory, 'token'), 'renewed')
      api.disconnect()
      api.put('pods', podObject({ name: 'b' }))
      await until('the next is told', waitMs, () => pods.length === 2)
      assert.equal(api.count('list pods') - warnings.length <= 1, true)
    },
  )
})

test('a token that the server does not know is told with a hint', () => {
  const serviceAccountDirectory = account('wrong')
  return run(
    { tls },
    () => ({ serviceAccountDirectory }),
    async ({ api, source, pods }) => {
      api.conduct.token = 'right'
      await until('the state says so', waitMs, () => source.state.reason !== '')
      assert.match(
        source.state.reason,
        /^the API server https:\/\/127\.0\.0\.1:\d+ rejected our credentials \(401\)$/,
      )
      assert.equal(source.state.hint, 'renew the token or certificate of the account')
      writeFileSync(join(serviceAccountDirectory, 'token'), 'right')
      await until('the pod is told', waitMs, () => pods.length === 1)
    },
  )
})

test('a server that the authority does not vouch for is not asked, until the authority is renewed', () => {
  const serviceAccountDirectory = account('s3cret', certificates.text('stranger.pem'))
  return run(
    { tls },
    () => ({ serviceAccountDirectory }),
    async ({ api, source, pods }) => {
      await until('the state says so', waitMs, () => source.state.reason !== '')
      assert.match(
        source.state.reason,
        /^cannot reach the API server https:.*: unable to (?:verify|get)[^;]*$/,
      )
      assert.match(source.state.hint, /certificate-authority/)
      assert.deepEqual(api.asked, [])
      writeFileSync(join(serviceAccountDirectory, 'ca.crt'), certificates.text('ca.pem'))
      await until('the pod is told', waitMs, () => pods.length === 1)
    },
  )
})

test('files that are missing are waited for', () => {
  const serviceAccountDirectory = join(directory, 'later')
  return run(
    { tls },
    () => ({ serviceAccountDirectory }),
    async ({ source, pods, warnings }) => {
      await until('the state says so', waitMs, () => source.state.reason !== '')
      assert.match(source.state.reason, /^cannot read the token .*later\/token: ENOENT/)
      assert.equal(source.state.hint, 'set automountServiceAccountToken: true in the pod of svc')
      mkdirSync(serviceAccountDirectory)
      writeFileSync(join(serviceAccountDirectory, 'ca.crt'), certificates.text('ca.pem'))
      writeFileSync(join(serviceAccountDirectory, 'token'), 't')
      await until('the pod is told', waitMs, () => pods.length === 1)
      assert.ok(warnings.length > 0)
    },
  )
})

test('a kubeconfig with certificates is used, inline and as files beside it', async () => {
  const base64 = (name: string) => Buffer.from(certificates.text(name)).toString('base64')
  const authority = { 'certificate-authority-data': base64('ca.pem'), 'tls-server-name': 'localhost' }
  const inline = { 'client-certificate-data': base64('client.pem'), 'client-key-data': base64('client.key') }
  writeFileSync(join(directory, 'c.pem'), certificates.text('client.pem'))
  const files = { 'client-certificate': 'c.pem', 'client-key': certificates.file('client.key') }
  for (const user of [inline, files]) {
    const config = (api: KubernetesApi) => {
      const path = join(directory, 'kubeconfig')
      writeFileSync(path, kubeconfig({ server: `https://127.0.0.1:${api.port}/`, ...authority }, user))
      return { kubeconfig: path }
    }
    await run({ tls: { ...tls, ca: certificates.text('ca.pem') } }, config, async ({ pods }) => {
      await until('the pod is told', waitMs, () => pods.length === 1)
    })
  }
})

test('a kubeconfig that was renewed is read again, for the same server', async () => {
  const path = join(directory, 'renewed')
  const write = (token: string, server = 'https://127.0.0.1:6443') =>
    writeFileSync(path, kubeconfig({ server }, { token }))
  write('first')
  const access = await findAccess({ kubeconfig: path, environment: {}, serviceAccountDirectory: directory })
  const credentials = new Credentials(access, 0)
  const check = async (want: string) =>
    assert.equal((await credentials.load()).authorization, `Bearer ${want}`)
  await check('first')
  write('second')
  await check('second')
  write('of-another', 'https://127.0.0.1:7443')
  await check('second')
  writeFileSync(path, 'half of i')
  await check('second')
})

test('where no node is named, the pod of svc says where it is', () => {
  const serviceAccountDirectory = account('t')
  const own = podObject({ name: 'svc-x7', namespace: 'monitoring', node: 'node-z' })
  const options = (api: KubernetesApi) => {
    api.put('pods', own)
    return {
      serviceAccountDirectory,
      nodeName: '',
      environment: {
        KUBERNETES_SERVICE_HOST: '127.0.0.1',
        KUBERNETES_SERVICE_PORT: String(api.port),
        HOSTNAME: 'svc-x7',
      },
    }
  }
  return run({ tls }, options, async ({ source, pods }) => {
    await until('the pod is told', waitMs, () => pods.length === 1)
    assert.deepEqual(pods, ['svc-x7'])
    assert.equal(source.state.node, 'node-z')
  })
})

test('a node that has no pods, and was only guessed, is pointed out', () => {
  const serviceAccountDirectory = account('t')
  const options = (api: KubernetesApi) => ({
    serviceAccountDirectory,
    nodeName: '',
    environment: {
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String(api.port),
      HOSTNAME: 'x',
    },
  })
  return run({ tls }, options, async ({ source }) => {
    await until('it is connected', waitMs, () => source.state.connected)
    assert.match(source.state.reason, /^no pod in the cluster runs on a node called "/)
    assert.match(source.state.hint, /agent\.discovery\.kubernetes\.node_name/)
  })
})

test('outside of a cluster, and without a kubeconfig, nothing is asked and nothing is wrong', () =>
  run(
    {},
    () => ({ environment: {} }),
    async ({ api, source, warnings }) => {
      await until('the state says so', waitMs, () => source.state.reason !== '')
      assert.match(source.state.reason, /^not in a pod \(KUBERNETES_SERVICE_HOST is not set\)/)
      assert.equal(source.state.hint, '')
      assert.equal(source.state.inCluster, false)
      assert.deepEqual([api.asked, warnings], [[], []])
    },
  ))

function kubeconfig(cluster: object, user: object, more: object = {}): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'admin@lab',
    contexts: [{ name: 'admin@lab', context: { cluster: 'lab', user: 'admin', namespace: 'ours' } }],
    clusters: [{ name: 'lab', cluster }],
    users: [{ name: 'admin', user }],
    ...more,
  })
}

test('a kubeconfig says where the server is and who we are', () => {
  const access = parseKubeconfig(
    kubeconfig(
      { server: 'https://[fd00::1]:6443/k8s/c-1/', 'insecure-skip-tls-verify': true },
      { token: 't' },
    ),
    '/etc/k/config',
  )
  assert.deepEqual(access, {
    kubeconfig: '/etc/k/config',
    host: 'fd00::1',
    port: 6443,
    secure: true,
    basePath: '/k8s/c-1',
    serverName: '',
    insecureSkipVerify: true,
    ca: undefined,
    certificate: undefined,
    key: undefined,
    token: { text: 't' },
    basic: '',
    cluster: 'lab',
    namespace: 'ours',
  })
  const { token, ca, port } = parseKubeconfig(
    kubeconfig({ server: 'https://a', 'certificate-authority': 'ca.pem' }, { token: 't', tokenFile: 'tok' }),
    '/etc/k/config',
  )
  assert.deepEqual([token, ca, port], [{ file: '/etc/k/tok' }, { file: '/etc/k/ca.pem' }, 443])
})

test('a kubeconfig that cannot be used says why, and what to do', () => {
  const server = { server: 'https://a' }
  const check = (text: string, reason: RegExp, hint = /^correct k$/) =>
    assert.throws(
      () => parseKubeconfig(text, 'k'),
      (error: AccessError) =>
        error instanceof AccessError && reason.test(error.message) && hint.test(error.hint),
    )
  check('{', /not YAML/)
  check('just text', /not YAML/)
  check('a: &a [*a, *a]\nb: !!js/function x', /not YAML|current-context/, /./)
  check(
    kubeconfig(server, {}, { 'current-context': '' }),
    /current-context is missing/,
    /kubectl config use-context/,
  )
  check(kubeconfig(server, {}, { contexts: 7 }), /no context "admin@lab"/)
  check(kubeconfig(server, {}, { clusters: [null] }), /no cluster "lab"/)
  check(kubeconfig(server, {}, { users: [] }), /no user "admin"/)
  check(kubeconfig({ server: 'localhost:8080' }, {}), /not a URL/)
  check(kubeconfig({ server: 'ftp://a' }, {}), /not a URL/)
  check(
    kubeconfig(server, { exec: { command: 'aws' } }),
    /from a program, and svc runs no other programs/,
    /service account/,
  )
  check(kubeconfig(server, { 'auth-provider': { name: 'gcp' } }), /a kubectl plugin/, /service account/)
  check(kubeconfig({ ...server, 'proxy-url': 'http://p' }, {}), /behind a proxy/, /proxy-url/)
  check(kubeconfig({ server: 'http://10.0.0.1' }, { token: 'T0' }), /clear text/, /https/)
})

test('a kubeconfig that is not there says so', () =>
  assert.rejects(
    findAccess({ kubeconfig: join(directory, 'none'), environment: {}, serviceAccountDirectory: '' }),
    /^AccessError: cannot read the kubeconfig .*none: ENOENT/,
  ))
