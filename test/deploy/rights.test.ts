// The rules of the chart are what is asked of the API server: nothing less, and nothing more.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, beforeEach, test } from 'node:test'
import { loadConfig } from '../../src/config/index.ts'
import { KubernetesSource } from '../../src/identity/discovery/kubernetes/kubernetes-source.ts'
import { jobsOf } from '../../src/signals/metrics/scraping/jobs/jobs.ts'
import { KubernetesTargets } from '../../src/signals/metrics/scraping/sources/kubernetes/kubernetes.ts'
import { renderChart, withoutHelmRender } from '../helpers/helm-chart.ts'
import { type KubeObject, objectsOf } from '../helpers/helm-objects.ts'
import { KubernetesApi, podObject } from '../helpers/kubernetes-api.ts'
import { until } from '../helpers/program.ts'
import { ReportedTargets } from '../helpers/reported-targets.ts'

const waitMs = 60_000
const directory = mkdtempSync(join(tmpdir(), 'svc-rights-'))
let api: KubernetesApi
let environment: NodeJS.ProcessEnv
after(() => rmSync(directory, { recursive: true }))
beforeEach(async () => {
  api = await KubernetesApi.start()
  environment = { KUBERNETES_SERVICE_HOST: '127.0.0.1', NODE_NAME: 'node-a' }
  const cluster = { name: 'lab', cluster: { server: `http://127.0.0.1:${api.port}` } }
  const context = { name: 'c', context: { cluster: 'lab', user: 'u', namespace: 'svc' } }
  const document = {
    'current-context': 'c',
    contexts: [context],
    clusters: [cluster],
    users: [{ name: 'u', user: {} }],
  }
  writeFileSync(join(directory, 'kubeconfig'), JSON.stringify(document))
})
afterEach(() => api.close())

test('the agent may do what its discovery asks', { skip: withoutHelmRender }, async () => {
  api.put('pods', podObject({ name: 'a', owner: { kind: 'ReplicaSet', name: 'a', uid: 'u1' } }))
  api.put('pods', podObject({ name: 'b', owner: { kind: 'Job', name: 'b', uid: 'u2' } }))
  const source = new KubernetesSource({
    kubeconfig: join(directory, 'kubeconfig'),
    nodeName: '',
    namespaces: [],
    labels: [],
    annotations: [],
    sink: {
      container: () => undefined,
      containerGone: () => undefined,
      cloud: () => undefined,
      pod: () => undefined,
      podGone: () => undefined,
      cluster: () => undefined,
    },
    warn: () => undefined,
    environment,
  })
  source.start()
  try {
    await until('it watches', waitMs, () => source.state.connected && api.watches === 2)
    await until(
      'owners are asked for',
      waitMs,
      () => api.count('get replicasets') + api.count('get jobs') > 1,
    )
    await until('the cluster is asked for', waitMs, () => api.count('get namespaces') > 0)
  } finally {
    source.stop()
  }
  const [result] = renderChart([{}])
  assert.deepEqual(granted(objectsOf(result!), 'svc-svc'), asked())
  const off = renderChart([
    { values: [{ config: { agent: { discovery: { detect_kubernetes: false } } } }] },
    { values: [{ config: { agent: { discovery: false } } }] },
  ])
  for (const each of off)
    assert.equal(roles(objectsOf(each)).length, 0, 'what asks nothing is granted nothing')
})

const cases: readonly object[] = [
  { kubernetes_sd: [{ role: 'pod' }] },
  { kubernetes_sd: [{ role: 'service' }] },
  { kubernetes_sd: [{ role: 'endpoints' }] },
  { kubernetes_sd: [{ role: 'endpointslice' }] },
  { kubernetes_sd: [{ role: 'node' }] },
  { kubernetes_sd: [{ role: 'ingress' }] },
  {
    scrape_configs: [
      {
        job_name: 'a',
        kubernetes_sd_configs: [{ role: 'pod', attach_metadata: { node: true } }, { role: 'endpoints' }],
      },
    ],
  },
]
for (const prometheus of cases)
  test(`a collector may do what ${JSON.stringify(prometheus)} asks`, {
    skip: withoutHelmRender,
  }, async () => {
    const collector = { enabled: true, config: { collectors: { prometheus } } }
    const [result] = renderChart([
      { values: [{ agent: { enabled: false }, auth: { enabled: false }, collector }] },
    ])
    const objects = objectsOf(result!)
    const sources = settingsOf(objects).map(
      settings => new KubernetesTargets(settings, { ...new ReportedTargets().options, environment }),
    )
    try {
      for (const source of sources) source.start()
      await until('all are connected', waitMs, () => sources.every(({ state }) => state.connected))
      // A watch begins after its list.
      const listed = api.asked.filter(each => each.startsWith('list '))
      await until('all watch', waitMs, () =>
        listed.every(each => api.count(each.replace('list', 'watch')) > 0),
      )
    } finally {
      for (const source of sources) source.stop()
    }
    assert.deepEqual(granted(objects, 'svc-svc-collector'), asked())
  })

/** What the collector reads from its ConfigMap. */
function settingsOf(objects: readonly KubeObject[]) {
  const path = join(directory, 'config.yaml')
  writeFileSync(path, objects.find(({ kind }) => kind === 'ConfigMap')!.data['config.yaml'])
  const { config, problems } = loadConfig({ path, explicit: true, env: {} })
  assert.deepEqual(problems, [])
  const { jobs } = jobsOf(config.collectors.prometheus, { baseDir: directory })
  return jobs
    .flatMap(({ sources }) => sources)
    .flatMap(each =>
      each.kind === 'kubernetes' ? [{ ...each, kubeconfigFile: join(directory, 'kubeconfig') }] : [],
    )
}

/** `verb group/resource`, in order. */
function asked(): string[] {
  const all = api.urls.map((url, i) => {
    const group = /^\/apis\/([^/]+)\//.exec(url)?.[1] ?? ''
    const [verb, resource] = api.asked[i]!.split(' ')
    return `${verb} ${group}/${resource}`
  })
  return [...new Set(all)].sort()
}

function granted(objects: readonly KubeObject[], role: string): string[] {
  const found = roles(objects).find(({ metadata }) => metadata.name === role)
  assert.ok(found, `there is no role ${role}`)
  const all = (found.rules as KubeObject[]).flatMap(({ apiGroups, resources, verbs }) =>
    verbs.flatMap((verb: string) =>
      apiGroups.flatMap((group: string) => resources.map((each: string) => `${verb} ${group}/${each}`)),
    ),
  )
  return [...new Set<string>(all)].sort()
}

function roles(objects: readonly KubeObject[]): KubeObject[] {
  return objects.filter(({ kind }) => kind === 'ClusterRole')
}
