// The chart and the kustomizations at a real API server, and its accounts with what the agent asks.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { stringify } from 'yaml'
import { KubernetesSource } from '../../src/identity/discovery/kubernetes/kubernetes-source.ts'
import { KubernetesTargets } from '../../src/signals/metrics/scraping/sources/kubernetes/kubernetes.ts'
import { renderChart, withoutHelmRender } from '../helpers/helm-chart.ts'
import { type KubeObject, objectsOf, places } from '../helpers/helm-objects.ts'
import { combinations } from '../helpers/helm-values.ts'
import { KubeApiserver, withoutKubeApiserver } from '../helpers/kube-apiserver.ts'
import { kubectl, withoutKubectl } from '../helpers/kubectl.ts'
import { podObject } from '../helpers/kubernetes-api.ts'
import { until } from '../helpers/program.ts'
import { ReportedTargets } from '../helpers/reported-targets.ts'

const waitMs = 60_000
const skip = withoutKubeApiserver || withoutKubectl || withoutHelmRender
const root = resolve(import.meta.dirname, '../..')
/** The server knows no kinds of others. */
const foreign = /^(ServiceMonitor|PodMonitor|SecurityContextConstraints)$/

test('at a real API server', { skip }, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-chart-server-'))
  let server!: KubeApiserver

  before(async () => {
    server = await KubeApiserver.start()
    const cluster = {
      server: `https://127.0.0.1:${server.port}`,
      'certificate-authority': server.certificates.file('ca.pem'),
    }
    const document = {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'lab', user: 'u' } }],
      clusters: [{ name: 'lab', cluster }],
      users: [{ name: 'u', user: { token: 'admin' } }],
    }
    writeFileSync(join(directory, 'kubeconfig'), JSON.stringify(document))
    for (const name of ['svc', 'observability'])
      await server.ask('POST', '/api/v1/namespaces', { metadata: { name } })
    await server.ask('POST', '/apis/node.k8s.io/v1/runtimeclasses', {
      metadata: { name: 'nvidia' },
      handler: 'nvidia',
    })
  })
  after(async () => {
    await server?.close()
    rmSync(directory, { recursive: true })
  })

  const run = (args: readonly string[], input = '') => {
    const { status, stdout, stderr } = kubectl(
      ['--kubeconfig', join(directory, 'kubeconfig'), ...args],
      input,
    )
    assert.equal(status, 0, `kubectl ${args.join(' ')}: ${stderr}`)
    return stdout
  }
  const text = (objects: readonly KubeObject[]) =>
    objects
      .filter(({ kind }) => !foreign.test(kind))
      .map(each => stringify(each))
      .join('---\n')

  await t.test('every combination of values is taken, strictly', () => {
    const asked = Object.values(combinations).map(each => ({ ...each, kubeVersion: 'v1.20.2' }))
    for (const each of renderChart(asked)) {
      const input = text(objectsOf(each))
      run(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], input)
    }
  })

  await t.test('what is applied again is unchanged', () => {
    const [result] = renderChart([
      { kubeVersion: 'v1.20.2', values: [{ collector: { enabled: true, config: scraping } }] },
    ])
    const input = text(objectsOf(result!).filter(({ kind }) => kind !== 'Pod'))
    const generations = () => {
      run(['apply', '-f', '-'], input)
      const { items } = JSON.parse(run(['-n', 'svc', 'get', 'daemonset,statefulset', '-o', 'json']))
      return items.map(({ kind, metadata }: KubeObject & { metadata: { generation?: number } }) => [
        kind,
        metadata.generation,
      ])
    }
    // kubectl sees a difference in the claims, whose defaults are the server's; to the server there is none.
    assert.deepEqual(generations(), generations())
  })

  await t.test(
    'the account of the agent finds pods, owners and the cluster, and may do no more',
    async () => {
      const asUser = ['--as', 'system:serviceaccount:svc:svc']
      const may = (...words: readonly string[]) =>
        kubectl(['--kubeconfig', join(directory, 'kubeconfig'), 'auth', 'can-i', ...words, '-A', ...asUser])
          .status === 0
      assert.ok(may('list', 'pods') && may('watch', 'services') && may('get', 'replicasets.apps'))
      for (const words of [
        ['get', 'secrets'],
        ['list', 'secrets'],
        ['list', 'nodes'],
        ['create', 'pods'],
        ['create', 'pods/exec'],
        ['delete', 'pods'],
        ['patch', 'services'],
        ['list', 'replicasets.apps'],
      ])
        assert.ok(!may(...words), words.join(' '))
      const warnings: string[] = []
      const pods: string[] = []
      const clusters: string[] = []
      const source = new KubernetesSource({
        ...(await accountOf('svc')),
        kubeconfig: '',
        nodeName: 'node-a',
        namespaces: [],
        labels: [],
        annotations: [],
        sink: {
          container: () => undefined,
          containerGone: () => undefined,
          cloud: () => undefined,
          pod: pod => pods.push(`${pod.name} ${pod.owners.map(({ kind }) => kind).join()}`),
          podGone: () => undefined,
          cluster: uid => clusters.push(uid),
        },
        warn: (reason, hint) => warnings.push(`${reason}; ${hint}`),
      })
      await makeOwned()
      source.start()
      try {
        await until(
          () => JSON.stringify(source.state),
          waitMs,
          () => source.state.connected,
        )
        await until(
          () => `the owners are known: ${pods}; ${warnings}`,
          waitMs,
          () => pods.includes('cart-7-x ReplicaSet,Deployment') && clusters.length > 0,
        )
        assert.deepEqual([source.state.reason, warnings], ['', []])
      } finally {
        source.stop()
      }
    },
  )

  await t.test('the account of the collector finds its targets', async () => {
    const told = new ReportedTargets()
    const account = await accountOf('svc-collector')
    const sources = (['pod', 'endpoints'] as const).map(
      role =>
        new KubernetesTargets(
          {
            kind: 'kubernetes',
            role,
            kubeconfigFile: '',
            namespaces: [],
            ownNamespace: false,
            labelSelector: '',
            fieldSelector: '',
            attachNodeMetadata: false,
          },
          { ...told.options, ...account },
        ),
    )
    try {
      for (const source of sources) source.start()
      await until(
        () => JSON.stringify(sources.map(({ state }) => state)),
        waitMs,
        () => sources.every(({ state }) => state.connected),
      )
    } finally {
      for (const source of sources) source.stop()
    }
  })

  await t.test('every kustomization is taken', () => {
    for (const place of Object.keys(places)) {
      const { stdout } = kubectl(['kustomize', resolve(root, 'deploy/kustomize', place)])
      const known = stdout.split(/^---\n/m).filter(each => !/^kind: SecurityContextConstraints/m.test(each))
      // Its profile of AppArmor is a field of Kubernetes 1.30, and its budget of 1.21: this server is older.
      const older = known.map(each => each.replace('policy/v1\n', 'policy/v1beta1\n')).join('---\n')
      run(['apply', '--dry-run=server', '--validate=false', '-f', '-'], older)
    }
  })

  /** Its own token, as the kubelet puts it into its pod. */
  async function accountOf(name: string) {
    const path = `/api/v1/namespaces/svc/serviceaccounts/${name}/token`
    const request = { spec: { expirationSeconds: 3600 } }
    const { status } = (await server.ask('POST', path, request)) as { status?: { token: string } }
    const place = join(directory, name)
    mkdirSync(place)
    writeFileSync(join(place, 'token'), status!.token)
    writeFileSync(join(place, 'namespace'), 'svc')
    writeFileSync(join(place, 'ca.crt'), server.certificates.text('ca.pem'))
    const environment = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(server.port) }
    return { serviceAccountDirectory: place, environment }
  }

  async function makeOwned(): Promise<void> {
    const spec = {
      selector: { matchLabels: { app: 'cart' } },
      template: {
        metadata: { labels: { app: 'cart' } },
        spec: { containers: [{ name: 'main', image: 'cart' }] },
      },
    }
    const make = async (resource: string, metadata: object) =>
      (
        (await server.ask('POST', `/apis/apps/v1/namespaces/default/${resource}`, { metadata, spec })) as {
          metadata?: { uid: string }
        }
      ).metadata!.uid
    const uid = await make('deployments', { name: 'cart' })
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'cart', uid, controller: true }
    const set = await make('replicasets', { name: 'cart-7', ownerReferences: [owner] })
    const { status: _, ...pod } = podObject({
      name: 'cart-7-x',
      namespace: 'default',
      owner: { kind: 'ReplicaSet', name: 'cart-7', uid: set },
    })
    await server.ask('POST', '/api/v1/namespaces/default/pods', pod)
  }
})

const scraping = { collectors: { prometheus: { kubernetes_sd: [{ role: 'pod' }, { role: 'endpoints' }] } } }
