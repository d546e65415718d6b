import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, beforeEach, test } from 'node:test'
import { type Json, KubernetesApi } from '../../../../../../test/helpers/kubernetes-api.ts'
import { until } from '../../../../../../test/helpers/program.ts'
import { isAtFault, ReportedTargets } from '../../../../../../test/helpers/reported-targets.ts'
import type { SettingsOf } from '../../source.ts'
import { KubernetesTargets } from './kubernetes.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-kubernetes-sd-'))
after(() => rmSync(directory, { recursive: true }))
const timing = {
  answerMs: 10_000,
  refusedMs: 100,
  backoff: { initialMs: 20, maxMs: 200, multiplier: 2, jitter: 0.5 },
}

let api: KubernetesApi
let told: ReportedTargets
let source: KubernetesTargets

beforeEach(async () => {
  api = await KubernetesApi.start()
  told = new ReportedTargets()
})
afterEach(async () => {
  source.stop()
  await api.close()
})

function kubeconfig(): string {
  const path = join(directory, `config-${Math.random()}`)
  const document = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'lab', user: 'u', namespace: 'shop' } }],
    clusters: [{ name: 'lab', cluster: { server: `http://127.0.0.1:${api.port}` } }],
    users: [{ name: 'u', user: {} }],
  }
  writeFileSync(path, JSON.stringify(document))
  return path
}

function start(settings: Partial<SettingsOf<'kubernetes'>>): void {
  source = new KubernetesTargets(
    {
      kind: 'kubernetes',
      role: 'pod',
      kubeconfigFile: kubeconfig(),
      namespaces: [],
      ownNamespace: false,
      labelSelector: '',
      fieldSelector: '',
      attachNodeMetadata: false,
      ...settings,
    },
    { ...told.options, environment: {}, timing },
  )
  source.start()
}

const prefix = '__meta_kubernetes_'

/** Labels as they are told, without the prefix of the meta labels. */
function short(target: Record<string, string> | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(target ?? {}).map(([name, value]) => [name.replace(prefix, ''), value]),
  )
}

function pod(name: string, parts: { ip?: string; ports?: Json[]; metadata?: Json; spec?: Json } = {}): Json {
  const { ip = '10.1.0.7', ports = [{ containerPort: 9090, name: 'http', protocol: 'TCP' }] } = parts
  return {
    metadata: { name, namespace: 'shop', uid: `uid-of-${name}`, ...parts.metadata },
    spec: { nodeName: 'node-a', containers: [{ name: 'main', image: 'cart:1.2', ports }], ...parts.spec },
    status: {
      phase: 'Running',
      podIP: ip,
      hostIP: '192.0.2.1',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'main', containerID: 'containerd://abc' }],
    },
  }
}

const node: Json = {
  metadata: {
    name: 'node-a',
    labels: { 'topology.kubernetes.io/zone': 'a' },
    annotations: { note: 'x' },
  },
  spec: { providerID: 'aws:///i-1' },
  status: {
    addresses: [
      { type: 'Hostname', address: 'a.internal' },
      { type: 'InternalIP', address: '192.0.2.1' },
      { type: 'InternalIP', address: '2001:db8::1' },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
  },
}

const service: Json = {
  metadata: { name: 'cart', namespace: 'shop', labels: { app: 'cart' }, annotations: { 'a/b': 'c' } },
  spec: {
    type: 'ClusterIP',
    clusterIP: '10.0.0.7',
    ports: [{ name: 'http', port: 80, protocol: 'TCP' }, { port: 'wrong' }],
  },
}

const serviceLabels = {
  service_name: 'cart',
  service_label_app: 'cart',
  service_labelpresent_app: 'true',
  service_annotation_a_b: 'c',
  service_annotationpresent_a_b: 'true',
}

test('a pod is a target for each port of each container', async () => {
  const metadata = {
    labels: { 'app.kubernetes.io/name': 'cart', empty: '' },
    annotations: {
      'prometheus.io/port': '9090',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      long: 'x'.repeat(5000),
    },
    ownerReferences: [
      { kind: 'Other', name: 'o' },
      { kind: 'ReplicaSet', name: 'cart-7', controller: true },
    ],
  }
  const containers = [
    {
      name: 'main',
      image: 'cart:1.2',
      ports: [
        { containerPort: 9090, name: 'http', protocol: 'TCP' },
        { containerPort: 9091, protocol: 'TCP' },
      ],
    },
    { name: 'bare', image: 'side:1' },
  ]
  const initContainers = [{ name: 'proxy', image: 'proxy:1', ports: [{ containerPort: 15090 }] }]
  api.put('pods', pod('cart-7-x', { metadata, spec: { containers, initContainers } }))
  api.put('pods', pod('starting', { ip: '' }))
  start({})
  await told.has('10.1.0.7,10.1.0.7:15090,10.1.0.7:9090,10.1.0.7:9091', source)
  const common = {
    namespace: 'shop',
    pod_name: 'cart-7-x',
    pod_ip: '10.1.0.7',
    pod_ready: 'true',
    pod_phase: 'Running',
    pod_node_name: 'node-a',
    pod_host_ip: '192.0.2.1',
    pod_uid: 'uid-of-cart-7-x',
    pod_controller_kind: 'ReplicaSet',
    pod_controller_name: 'cart-7',
    pod_label_app_kubernetes_io_name: 'cart',
    pod_labelpresent_app_kubernetes_io_name: 'true',
    pod_labelpresent_empty: 'true',
    pod_annotation_prometheus_io_port: '9090',
    pod_annotationpresent_prometheus_io_port: 'true',
    pod_annotationpresent_kubectl_kubernetes_io_last_applied_configuration: 'true',
    pod_annotationpresent_long: 'true',
  }
  const main = {
    pod_container_name: 'main',
    pod_container_image: 'cart:1.2',
    pod_container_id: 'containerd://abc',
    pod_container_init: 'false',
  }
  assert.deepEqual(told.targets.map(short), [
    {
      ...common,
      ...main,
      __address__: '10.1.0.7:9090',
      pod_container_port_name: 'http',
      pod_container_port_number: '9090',
      pod_container_port_protocol: 'TCP',
    },
    {
      ...common,
      ...main,
      __address__: '10.1.0.7:9091',
      pod_container_port_number: '9091',
      pod_container_port_protocol: 'TCP',
    },
    {
      ...common,
      __address__: '10.1.0.7',
      pod_container_name: 'bare',
      pod_container_image: 'side:1',
      pod_container_init: 'false',
    },
    {
      ...common,
      __address__: '10.1.0.7:15090',
      pod_container_name: 'proxy',
      pod_container_image: 'proxy:1',
      pod_container_init: 'true',
      pod_container_port_number: '15090',
    },
  ])
  assert.equal(told.groups[0]!.source, 'pod/shop/cart-7-x')
  assert.ok(source.state.connected)
})

test('a service is a target for each port, by its name', async () => {
  api.put('services', service)
  const outside = { type: 'ExternalName', externalName: 'x.example.com', ports: [{ port: 1 }] }
  api.put('services', { metadata: { name: 'out', namespace: 'shop' }, spec: outside })
  const balanced = { type: 'LoadBalancer', clusterIP: '10.0.0.8', loadBalancerIP: '192.0.2.9' }
  api.put('services', {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { ...balanced, ports: [{ port: 2 }] },
  })
  start({ role: 'service' })
  await told.has('cart.shop.svc:80,out.shop.svc:1,web.shop.svc:2', source)
  assert.deepEqual(short(told.at('cart.shop.svc:80')), {
    __address__: 'cart.shop.svc:80',
    namespace: 'shop',
    ...serviceLabels,
    service_type: 'ClusterIP',
    service_cluster_ip: '10.0.0.7',
    service_port_name: 'http',
    service_port_number: '80',
    service_port_protocol: 'TCP',
  })
  assert.equal(told.at('out.shop.svc:1')![`${prefix}service_external_name`], 'x.example.com')
  assert.equal(told.at('web.shop.svc:2')![`${prefix}service_loadbalancer_ip`], '192.0.2.9')
  assert.equal(told.groups[0]!.source, 'svc/shop/cart')
})

test('a node is its kubelet', async () => {
  api.put('nodes', node)
  start({ role: 'node', namespaces: ['shop'] })
  await told.has('192.0.2.1:10250', source)
  assert.deepEqual(told.targets.map(short), [
    {
      __address__: '192.0.2.1:10250',
      instance: 'node-a',
      node_name: 'node-a',
      node_provider_id: 'aws:///i-1',
      node_label_topology_kubernetes_io_zone: 'a',
      node_labelpresent_topology_kubernetes_io_zone: 'true',
      node_annotation_note: 'x',
      node_annotationpresent_note: 'true',
      node_address_Hostname: 'a.internal',
      node_address_InternalIP: '192.0.2.1',
    },
  ])
})

test('an ingress is a target for each path of each host', async () => {
  const rule = (host: string, ...paths: string[]) => ({
    host,
    http: { paths: paths.map(path => ({ path })) },
  })
  const spec = {
    ingressClassName: 'nginx',
    tls: [{ hosts: ['*.example.com'] }],
    rules: [rule('shop.example.com', '/a', ''), rule('a.b.example.com'), { host: 'plain.org' }],
  }
  api.put('ingresses', { metadata: { name: 'web', namespace: 'shop', labels: { a: 'b' } }, spec })
  start({ role: 'ingress' })
  await told.has('a.b.example.com,plain.org,shop.example.com,shop.example.com', source)
  const common = {
    namespace: 'shop',
    ingress_name: 'web',
    ingress_class_name: 'nginx',
    ingress_label_a: 'b',
    ingress_labelpresent_a: 'true',
  }
  const target = (host: string, scheme: string, path: string) => ({
    ...common,
    __address__: host,
    ingress_host: host,
    ingress_scheme: scheme,
    ingress_path: path,
  })
  assert.deepEqual(told.targets.map(short), [
    target('shop.example.com', 'https', '/a'),
    target('shop.example.com', 'https', '/'),
    target('a.b.example.com', 'http', '/'),
    target('plain.org', 'http', '/'),
  ])
})

const ref = { kind: 'Pod', name: 'cart-7-x', namespace: 'shop' }

function putShop(): void {
  api.put('nodes', node)
  api.put('services', service)
  const ports = [
    { containerPort: 9090, name: 'http', protocol: 'TCP' },
    { containerPort: 9999, name: 'admin', protocol: 'TCP' },
  ]
  api.put('pods', pod('cart-7-x', { ports }))
}

const podLabels = {
  pod_name: 'cart-7-x',
  pod_ip: '10.1.0.7',
  pod_ready: 'true',
  pod_phase: 'Running',
  pod_node_name: 'node-a',
  pod_host_ip: '192.0.2.1',
  pod_uid: 'uid-of-cart-7-x',
  pod_container_name: 'main',
  pod_container_image: 'cart:1.2',
  pod_container_id: 'containerd://abc',
  pod_container_init: 'false',
  pod_container_port_protocol: 'TCP',
}
const ofHttp = { pod_container_port_name: 'http', pod_container_port_number: '9090' }
const ofAdmin = { pod_container_port_name: 'admin', pod_container_port_number: '9999' }
const nodeLabels = {
  node_name: 'node-a',
  node_label_topology_kubernetes_io_zone: 'a',
  node_labelpresent_topology_kubernetes_io_zone: 'true',
}

test('endpoints have the labels of their service, pod and node, and follow them', async () => {
  putShop()
  const subsets = [
    {
      ports: [{ name: 'http', port: 9090, protocol: 'TCP' }],
      addresses: [{ ip: '10.1.0.7', nodeName: 'node-a', targetRef: ref }],
      notReadyAddresses: [{ ip: '10.9.9.9', hostname: 'late' }],
    },
  ]
  api.put('endpoints', { metadata: { name: 'cart', namespace: 'shop', labels: { e: 'f' } }, subsets })
  start({ role: 'endpoints', attachNodeMetadata: true })
  await told.has('10.1.0.7:9090,10.1.0.7:9999,10.9.9.9:9090', source)
  const common = {
    namespace: 'shop',
    endpoints_name: 'cart',
    endpoints_label_e: 'f',
    endpoints_labelpresent_e: 'true',
    ...serviceLabels,
  }
  const ofPort = { endpoint_port_name: 'http', endpoint_port_protocol: 'TCP' }
  assert.deepEqual(told.targets.map(short), [
    {
      ...common,
      ...ofPort,
      ...podLabels,
      ...ofHttp,
      ...nodeLabels,
      __address__: '10.1.0.7:9090',
      endpoint_ready: 'true',
      endpoint_address_target_kind: 'Pod',
      endpoint_address_target_name: 'cart-7-x',
      endpoint_node_name: 'node-a',
    },
    {
      ...common,
      ...ofPort,
      __address__: '10.9.9.9:9090',
      endpoint_ready: 'false',
      endpoint_hostname: 'late',
    },
    { ...common, ...podLabels, ...ofAdmin, __address__: '10.1.0.7:9999' },
  ])
  const becomes = (label: string, value: string | undefined) =>
    until(
      () => `${label} is ${value}: ${JSON.stringify(told.targets)}`,
      20_000,
      () => told.at('10.1.0.7:9090')?.[`${prefix}${label}`] === value,
    )
  api.put('services', { metadata: { name: 'cart', namespace: 'shop', labels: { app: 'new' } } })
  await becomes('service_label_app', 'new')
  api.put('pods', pod('cart-7-x', { metadata: { labels: { tier: 'gold' } } }))
  await becomes('pod_label_tier', 'gold')
  api.delete('nodes', 'node-a')
  await becomes('node_name', undefined)
  api.delete('endpoints', 'cart', 'shop')
  await told.has('', source)
})

test('endpoints that stand for more than all memory are cut, and named', async () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => i)
  const metadata = { name: 'huge', namespace: 'shop' }
  const put = (addresses: number, ports: number): void => {
    const ips = many(addresses).map(i => ({ ip: `10.${i >> 8}.${i & 255}.1`, targetRef: ref }))
    const subset = { addresses: ips, ports: many(ports).map(i => ({ port: 1 + i, name: `p${i}` })) }
    api.put('endpoints', { metadata, subsets: [subset] })
  }
  putShop()
  put(4_000, 1_000)
  start({ role: 'endpoints' })
  await isAtFault(source, /^endpoints shop\/huge have too many targets; some are left out$/)
  await until('some are told', 20_000, () => told.targets.length > 10_000)
  assert.ok(told.targets.length < 100_000)
  put(1, 1)
  await told.has('10.0.0.1:1,10.1.0.7:9090,10.1.0.7:9999', source)
  assert.equal(source.state.reason, '')
})

test('endpoint slices have the labels of their service, pod and node', async () => {
  putShop()
  api.put('endpointslices', {
    metadata: { name: 'cart-abc', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'cart' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 9090, protocol: 'TCP', appProtocol: 'h2c' }],
    endpoints: [
      {
        addresses: ['10.1.0.7'],
        conditions: { ready: true, serving: true, terminating: false },
        hostname: 'h',
        nodeName: 'node-a',
        zone: 'z',
        deprecatedTopology: { 'a/b': 'c' },
        targetRef: ref,
      },
    ],
  })
  start({ role: 'endpointslice', attachNodeMetadata: true })
  await told.has('10.1.0.7:9090,10.1.0.7:9999', source)
  assert.deepEqual(short(told.targets[0]), {
    __address__: '10.1.0.7:9090',
    namespace: 'shop',
    endpointslice_name: 'cart-abc',
    endpointslice_label_kubernetes_io_service_name: 'cart',
    endpointslice_labelpresent_kubernetes_io_service_name: 'true',
    endpointslice_address_type: 'IPv4',
    endpointslice_port: '9090',
    endpointslice_port_name: 'http',
    endpointslice_port_protocol: 'TCP',
    endpointslice_port_app_protocol: 'h2c',
    endpointslice_endpoint_conditions_ready: 'true',
    endpointslice_endpoint_conditions_serving: 'true',
    endpointslice_endpoint_conditions_terminating: 'false',
    endpointslice_endpoint_hostname: 'h',
    endpointslice_endpoint_node_name: 'node-a',
    endpointslice_endpoint_zone: 'z',
    endpointslice_endpoint_topology_a_b: 'c',
    endpointslice_endpoint_topology_present_a_b: 'true',
    endpointslice_address_target_kind: 'Pod',
    endpointslice_address_target_name: 'cart-7-x',
    ...serviceLabels,
    ...podLabels,
    ...ofHttp,
    ...nodeLabels,
  })
})

test('namespaces and selectors narrow it down, and pods are joined with their nodes', async () => {
  api.put('nodes', node)
  api.put('pods', pod('one', { ip: '10.1.0.1', metadata: { labels: { app: 'a' } } }))
  api.put('pods', pod('two', { ip: '10.1.0.2', metadata: { labels: { app: 'b' } } }))
  api.put('pods', pod('far', { ip: '10.1.0.3', metadata: { namespace: 'far', labels: { app: 'a' } } }))
  start({ namespaces: ['dev'], ownNamespace: true, labelSelector: 'app=a', attachNodeMetadata: true })
  await told.has('10.1.0.1:9090', source)
  assert.equal(told.targets[0]![`${prefix}node_label_topology_kubernetes_io_zone`], 'a')
  const asked = api.urls.filter(url => url.includes('/pods?')).map(url => url.split('&')[0])
  assert.deepEqual([...new Set(asked)].sort(), [
    '/api/v1/namespaces/dev/pods?labelSelector=app%3Da',
    '/api/v1/namespaces/shop/pods?labelSelector=app%3Da',
  ])
})

test('what is joined must be known before anything is told, and its lack has a reason', async () => {
  putShop()
  api.put('endpoints', { metadata: { name: 'cart', namespace: 'shop' }, subsets: [] })
  api.conduct.forbidden.add('list services')
  start({ role: 'endpoints' })
  await isAtFault(source, /system:serviceaccount:svc:agent is not allowed to list services \(403\)/)
  assert.match(source.state.hint, /grant it get, list and watch on services by a ClusterRole/)
  assert.equal(told.times, 0)
  api.conduct.forbidden.clear()
  await told.has('', source)
  await until('it is well', 20_000, () => source.state.connected)
})

test('a server that is lost keeps the targets, and what it did meanwhile is found out', async () => {
  for (let i = 1; i <= 3; i++) api.put('pods', pod(`p${i}`, { ip: `10.1.0.${i}` }))
  start({})
  await told.has('10.1.0.1:9090,10.1.0.2:9090,10.1.0.3:9090', source)
  const { port } = api
  const [, second] = told.groups
  await api.close()
  await isAtFault(source, /cannot reach the API server/)
  assert.equal(source.state.connected, false)
  assert.equal(source.state.targets, 3)
  api.delete('pods', 'p1', 'shop')
  api.put('pods', pod('p3', { ip: '10.1.0.9' }))
  api.compact()
  await api.listen(port)
  await told.has('10.1.0.2:9090,10.1.0.9:9090', source)
  assert.equal(told.groups[0], second, 'what has not changed is the same object')
  // Made anew under its name: the old one goes after the new one has come.
  api.put('pods', pod('p2', { ip: '10.1.0.20', metadata: { uid: 'another' } }))
  await told.has('10.1.0.20:9090,10.1.0.9:9090', source)
})

test('nonsense makes neither targets nor errors', async () => {
  const values = [7, null, 'x', [], {}, [7], [{}], true]
  for (const [i, value] of values.entries()) {
    const metadata = { name: `n${i}`, namespace: 'shop' }
    const more = { metadata: { labels: value, annotations: value, ownerReferences: value } }
    api.put('pods', { ...pod(`p${i}`, more), spec: value, status: value })
    api.put('pods', pod(`q${i}`, { spec: { containers: value, initContainers: value } }))
    api.put('services', { metadata, spec: { ports: value, type: value } })
    api.put('nodes', { metadata: { name: `n${i}` }, status: { addresses: value, daemonEndpoints: value } })
    api.put('ingresses', { metadata, spec: { rules: value, tls: value } })
    api.put('endpoints', { metadata, subsets: value })
    api.put('endpoints', {
      metadata: { ...metadata, name: `m${i}` },
      subsets: [{ ports: value, addresses: value }],
    })
    const endpoints = [{ addresses: value, conditions: value, targetRef: value }]
    api.put('endpointslices', { metadata, ports: value, endpoints })
  }
  for (const role of ['pod', 'service', 'node', 'ingress', 'endpoints', 'endpointslice'] as const) {
    told = new ReportedTargets()
    start({ role })
    await until(`${role}s are known`, 20_000, () => told.times > 0 && source.state.connected)
    for (const target of told.targets)
      assert.ok(Object.values(target).every(value => typeof value === 'string'))
    source.stop()
  }
})

test('a thousand changes a second are told some times a second', async () => {
  for (let i = 0; i < 2000; i++) api.put('pods', pod(`p${i}`, { ip: `10.2.${i >> 8}.${i & 255}` }))
  start({})
  await until('all are told', 20_000, () => source.state.targets === 2000)
  const before = told.times
  const startedAt = performance.now()
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 200; i++) {
      if (round % 2 === 0) api.delete('pods', `p${i}`, 'shop')
      else api.put('pods', pod(`p${i}`, { ip: `10.2.0.${i}` }))
    }
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  await until('all are back', 20_000, () => source.state.targets === 2000)
  const elapsedMs = performance.now() - startedAt
  assert.ok(told.times - before <= elapsedMs / 50, `told ${told.times - before} times in ${elapsedMs} ms`)
  assert.equal(told.addresses.split(',').length, 2000)
})

test('without a cluster it says what to do', async () => {
  source = new KubernetesTargets(
    {
      kind: 'kubernetes',
      role: 'pod',
      kubeconfigFile: '',
      namespaces: [],
      ownNamespace: false,
      labelSelector: '',
      fieldSelector: '',
      attachNodeMetadata: false,
    },
    { ...told.options, environment: { HOME: directory }, timing },
  )
  source.start()
  await isAtFault(source, /not in a pod/)
  assert.match(source.state.hint, /run svc in a pod, or set kubeconfig_file/)
  assert.equal(source.state.connected, false)
})
