import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { KubeApiserver, withoutKubeApiserver } from '../../../../../../test/helpers/kube-apiserver.ts'
import { until } from '../../../../../../test/helpers/program.ts'
import { isAtFault, ReportedTargets } from '../../../../../../test/helpers/reported-targets.ts'
import type { SettingsOf } from '../../source.ts'
import { KubernetesTargets } from './kubernetes.ts'

const timing = { backoff: { initialMs: 50, maxMs: 500, multiplier: 2, jitter: 0.5 } }
const prefix = '__meta_kubernetes_'

test('every role at a real API server', { skip: withoutKubeApiserver }, async t => {
  const server = await KubeApiserver.start()
  t.after(() => server.close())
  const directory = mkdtempSync(join(tmpdir(), 'svc-kubernetes-sd-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const kubeconfig = (token: string) => {
    const path = join(directory, token)
    const cluster = {
      server: `https://127.0.0.1:${server.port}`,
      'certificate-authority': server.certificates.file('ca.pem'),
    }
    const document = {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'lab', user: 'u', namespace: 'default' } }],
      clusters: [{ name: 'lab', cluster }],
      users: [{ name: 'u', user: { token } }],
    }
    writeFileSync(path, JSON.stringify(document))
    return path
  }
  const open = (role: SettingsOf<'kubernetes'>['role'], token = 'admin') => {
    const told = new ReportedTargets()
    const settings = {
      kind: 'kubernetes',
      role,
      kubeconfigFile: kubeconfig(token),
      namespaces: ['default'],
      ownNamespace: false,
      labelSelector: 'app=cart',
      fieldSelector: '',
      attachNodeMetadata: true,
    } as const
    const source = new KubernetesTargets(settings, { ...told.options, timing })
    t.after(() => source.stop())
    source.start()
    return { told, source }
  }

  const metadata = { name: 'cart', namespace: 'default', labels: { app: 'cart' } }
  const core = '/api/v1/namespaces/default'
  await server.ask('POST', '/api/v1/nodes', {
    metadata: { ...metadata, name: 'node-a', namespace: undefined },
  })
  const addresses = [{ type: 'InternalIP', address: '192.0.2.1' }]
  const daemonEndpoints = { kubeletEndpoint: { Port: 10250 } }
  await server.ask('PATCH', '/api/v1/nodes/node-a/status', { status: { addresses, daemonEndpoints } })
  const ports = [{ name: 'http', containerPort: 9090 }]
  await server.ask('POST', `${core}/pods`, {
    metadata: { ...metadata, annotations: { 'prometheus.io/scrape': 'true' } },
    spec: { nodeName: 'node-a', containers: [{ name: 'main', image: 'cart:1', ports }] },
  })
  await server.ask('PATCH', `${core}/pods/cart/status`, {
    status: { phase: 'Running', podIP: '10.1.0.7', podIPs: [{ ip: '10.1.0.7' }] },
  })
  await server.ask('POST', `${core}/services`, { metadata, spec: { ports: [{ name: 'http', port: 80 }] } })
  const targetRef = { kind: 'Pod', name: 'cart', namespace: 'default' }
  await server.ask('POST', `${core}/endpoints`, {
    metadata,
    subsets: [
      {
        addresses: [{ ip: '10.1.0.7', nodeName: 'node-a', targetRef }],
        ports: [{ name: 'http', port: 9090 }],
      },
    ],
  })
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
  // Kubernetes 1.21 and newer.
  const hasSlices = (await server.status('GET', slices)) === 200
  if (hasSlices)
    await server.ask('POST', slices, {
      metadata: { ...metadata, labels: { app: 'cart', 'kubernetes.io/service-name': 'cart' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 9090 }],
      endpoints: [{ addresses: ['10.1.0.7'], nodeName: 'node-a', targetRef }],
    })
  const backend = { service: { name: 'cart', port: { number: 80 } } }
  const paths = [{ path: '/a', pathType: 'Prefix', backend }]
  await server.ask('POST', '/apis/networking.k8s.io/v1/namespaces/default/ingresses', {
    metadata,
    spec: { rules: [{ host: 'shop.example.com', http: { paths } }] },
  })

  const check = async (
    role: SettingsOf<'kubernetes'>['role'],
    address: string,
    labels: Record<string, string>,
  ) => {
    const { told, source } = open(role)
    await told.has(address, source)
    for (const [name, value] of Object.entries(labels))
      assert.equal(told.targets[0]![`${prefix}${name}`], value, `${role}: ${name}`)
    assert.equal(source.state.connected, true)
    source.stop()
  }
  const ofNode = { node_label_app: 'cart' }
  const ofPod = { pod_name: 'cart', pod_node_name: 'node-a', pod_container_port_name: 'http', ...ofNode }
  await check('node', '192.0.2.1:10250', { node_name: 'node-a', ...ofNode })
  await check('pod', '10.1.0.7:9090', { pod_annotation_prometheus_io_scrape: 'true', ...ofPod })
  await check('service', 'cart.default.svc:80', { service_name: 'cart', service_type: 'ClusterIP' })
  await check('endpoints', '10.1.0.7:9090', { service_name: 'cart', endpoint_port_protocol: 'TCP', ...ofPod })
  if (hasSlices)
    await check('endpointslice', '10.1.0.7:9090', {
      service_name: 'cart',
      endpointslice_port: '9090',
      ...ofPod,
    })
  else await isAtFault(open('endpointslice').source, /cannot list endpointslices at .*: HTTP 404/)
  await check('ingress', 'shop.example.com', { ingress_path: '/a', ingress_scheme: 'http' })

  // Who may see nothing says so, and goes on as soon as it may; changes come by the watch.
  const { told, source } = open('pod', 'agent')
  await isAtFault(source, /agent is not allowed to list (pods|nodes)/)
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  await server.ask('POST', `${rbac}/clusterroles`, {
    metadata: { name: 'svc' },
    rules: [{ apiGroups: [''], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] }],
  })
  await server.ask('POST', `${rbac}/clusterrolebindings`, {
    metadata: { name: 'svc' },
    subjects: [{ kind: 'User', name: 'agent', apiGroup: 'rbac.authorization.k8s.io' }],
    roleRef: { kind: 'ClusterRole', name: 'svc', apiGroup: 'rbac.authorization.k8s.io' },
  })
  await told.has('10.1.0.7:9090', source)
  await server.stopServer()
  await until('the loss is seen', 60_000, () => !source.state.connected)
  assert.equal(told.addresses, '10.1.0.7:9090')
  await server.startServer()
  await server.ask('DELETE', `${core}/pods/cart?gracePeriodSeconds=0`)
  await told.has('', source)
})
