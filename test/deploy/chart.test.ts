import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { probePaths } from '../../src/config/api-paths.ts'
import { type Config, loadConfig } from '../../src/config/index.ts'
import { parseArguments } from '../../src/program/cli/arguments.ts'
import { commands } from '../../src/program/cli/index.ts'
import { endMs } from '../../src/program/cli/run-agent.ts'
import { table } from '../../src/program/doctor/table.ts'
import { chart, type Rendered, renderChart, withoutHelmRender } from '../helpers/helm-chart.ts'
import { type KubeObject, objectsOf } from '../helpers/helm-objects.ts'
import { combinations } from '../helpers/helm-values.ts'
import { faultsOf } from '../helpers/kube-manifests.ts'

const root = resolve(import.meta.dirname, '../..')
const names = Object.keys(combinations)
const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'))
const directory = mkdtempSync(join(tmpdir(), 'svc-chart-'))
let rendered: ReadonlyMap<string, Rendered>

/** Workloads with what their pods run with. */
interface Run {
  readonly workload: KubeObject
  readonly container: KubeObject
  readonly config: Config
}

before(() => {
  if (withoutHelmRender) return
  const all = renderChart(Object.values(combinations))
  rendered = new Map(names.map((name, i) => [name, all[i]!]))
  for (const each of ['secret', 'auth']) mkdirSync(join(directory, each))
  for (const name of ['token', 'tls.crt', 'tls.key']) writeFileSync(join(directory, 'secret', name), 'x')
  writeFileSync(join(directory, 'auth', 'token'), 'x'.repeat(48))
})
after(() => rmSync(directory, { recursive: true }))

test('the values of the chart', { skip: withoutHelmRender }, async t => {
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { regex: true } })
  const isValid = ajv.compile(schema)
  for (const name of names)
    await t.test(`${name}: the schema takes them`, () => {
      assert.ok(isValid(rendered.get(name)!.values), JSON.stringify(isValid.errors))
    })

  await t.test('the schema knows every value that values.yaml has, and no other', () => {
    const known = pathsOf(schema)
    const given = leavesOf(parse(readFileSync(join(chart, 'values.yaml'), 'utf8')))
    assert.deepEqual(
      [...given].filter(path => !known.has(path)),
      [],
    )
    const documented = (path: string) => [...given].some(each => each === path || each.startsWith(`${path}.`))
    const rare = /^(global|(agent|collector)\.resources\.)/
    assert.deepEqual(
      [...known].filter(path => !documented(path) && !rare.test(path)),
      [],
    )
  })

  await t.test('Go takes every pattern of the schema', () => {
    const patterns = new Set<string>()
    JSON.stringify(schema, (key, value) => {
      if (key === 'pattern' && typeof value === 'string') patterns.add(value)
      return value
    })
    assert.ok(patterns.size > 10)
    const [result] = renderChart([{ patterns: [...patterns] }])
    assert.equal(result!.error, '')
  })

  const refused: readonly [values: object, where: RegExp][] = [
    [{ agents: {} }, /additional properties/],
    [{ agent: { hostnetwork: true } }, /additional properties/],
    [{ config: { agent: { epbf: {} } } }, /\/config\/agent must NOT have additional properties/],
    [{ config: { log_level: 'loud' } }, /\/config\/log_level/],
    [{ config: { svc: { mode: 'agent' } } }, /\/config must NOT have additional properties/],
    [{ collector: { replicas: 0 } }, /\/collector\/replicas must be >= 1/],
    [{ agent: { extraCapabilities: ['CAP_BPF'] } }, /extraCapabilities/],
    [{ platform: 'gke' }, /\/platform/],
    [{ fullnameOverride: 'Upper' }, /\/fullnameOverride/],
    [{ image: { digest: 'latest' } }, /\/image\/digest/],
  ]
  for (const [values, where] of refused)
    await t.test(`the schema refuses ${JSON.stringify(values)}`, () => {
      const [{ values: merged }] = renderChart([{ values: [values] }]) as [Rendered]
      assert.equal(isValid(merged), false)
      assert.match(ajv.errorsText(isValid.errors), where)
    })
})

test('what cannot work is refused with a sentence that says the hint', { skip: withoutHelmRender }, () => {
  const kubernetesSd = { collectors: { prometheus: { kubernetes_sd: [{ role: 'pod' }] } } }
  const refused: readonly [values: object, sentence: RegExp, apiVersions?: string[]][] = [
    [{ agent: { enabled: false } }, /set agent\.enabled=true or collector\.enabled=true/],
    [{ platform: 'fargate' }, /cannot run on Fargate.* --set agent\.enabled=false,collector\.enabled=true/],
    [{ platform: 'autopilot' }, /cannot run on GKE Autopilot.*--set platform=nodes/],
    [{}, /cannot run on GKE Autopilot/, ['auto.gke.io/v1']],
    [{ config: kubernetesSd }, /from every node: write it below collector\.config/],
    [{ config: { mode: 'collector' } }, /set collector\.enabled=true/],
    [
      { config: { self_telemetry: { listen: '127.0.0.1:19090' } } },
      /write ":PORT", or set agent\.hostNetwork=true/,
    ],
    [{ config: { self_telemetry: { listen: ':0' } } }, /the chart must know the port: write ":PORT"/],
    [{ agent: { serviceAccountName: 'mine' } }, /set serviceAccount\.create=false/],
    [
      { collector: { enabled: true, replicasPerTarget: 2 } },
      /replicasPerTarget is more than collector\.replicas/,
    ],
    [
      { collector: { enabled: true, config: { collectors: { prometheus: { shard: { count: 3 } } } } } },
      /set collector\.replicas and collector\.replicasPerTarget instead/,
    ],
    [
      { collector: { enabled: true }, config: { collectors: { prometheus: false } } },
      /set collector\.enabled=false, or write it below agent\.config/,
    ],
  ]
  const all = renderChart(refused.map(([values, , apiVersions = []]) => ({ values: [values], apiVersions })))
  for (const [i, [values, sentence]] of refused.entries()) {
    assert.match(all[i]!.error, sentence, JSON.stringify(values))
    assert.equal(all[i]!.files, null)
  }
  const [taken] = renderChart([{ values: [{ platform: 'nodes' }], apiVersions: ['auto.gke.io/v1'] }])
  assert.equal(taken!.error, '')
})

for (const name of names)
  test(`${name}: what is rendered`, { skip: withoutHelmRender }, async t => {
    const result = rendered.get(name)!
    assert.equal(result.error, '')
    const objects = objectsOf(result)

    await t.test('is what an API server takes', () => {
      assert.deepEqual(faultsOf(objects), [])
      assert.ok(objects.length > 2)
    })

    await t.test('asks of the program only what it has, and gives it all places that it uses', () => {
      for (const run of runsOf(objects)) holdToProgram(run, objects)
    })

    await t.test('tells its commands, of which svc takes its own', () => {
      const notes = result.files!['templates/NOTES.txt']!
      const lines = notes
        .split('\n')
        .filter(line => /^ {2}kubectl -n \S+ (rollout|exec|port-forward)/.test(line))
      // The last one asks for a link with a key, where there is a page and a token.
      assert.equal(lines.length, name === 'no management API' ? 2 : 4, notes)
      const workloads = objects.filter(({ kind }) => kind === 'DaemonSet' || kind === 'StatefulSet')
      const known = new Set(workloads.map(each => `${each.kind.toLowerCase()}/${each.metadata.name}`))
      for (const line of lines) {
        assert.ok(known.has(/\b(daemonset|statefulset)\/\S+/.exec(line)![0]), line)
        assert.equal(/ -n (\S+)/.exec(line)![1], workloads[0]!.metadata.namespace)
      }
      const own = notes.match(/-- svc .*/g)!.map(line => line.slice('-- svc '.length).split(' '))
      for (const words of own) assert.notEqual(typeof parseArguments(words, commands), 'string')
    })
  })

test('a rollout follows settings that take a restart, and no others', { skip: withoutHelmRender }, () => {
  const digests = (...configs: readonly object[]) =>
    renderChart(configs.map(config => ({ values: [{ config }] }))).map(
      each => workloadOf(objectsOf(each), 'DaemonSet').spec.template.metadata.annotations['svc/restart'],
    )
  const [none, live, ebpf, short, sameShort, listen] = digests(
    {},
    { log_level: 'debug', otlp: { endpoint: 'a:4317' } },
    { agent: { ebpf: { enabled: false } } },
    { agent: { ebpf: false } },
    { agent: { ebpf: false }, log_level: 'debug' },
    { self_telemetry: { listen: ':19191' } },
  )
  assert.equal(live, none)
  assert.equal(new Set([none, ebpf, short, listen]).size, 4)
  assert.equal(sameShort, short)
})

test('capabilities follow the features that are on', { skip: withoutHelmRender }, () => {
  const added = (config: object, more: object = {}) => {
    const [result] = renderChart([{ values: [{ config, ...more }] }])
    const { containers } = workloadOf(objectsOf(result!), 'DaemonSet').spec.template.spec
    return containers[0].securityContext.capabilities?.add
  }
  const all = [...new Set(table.flatMap(row => row.capabilities ?? []))].sort()
  assert.deepEqual(added({}), all)
  assert.deepEqual(added({ agent: { ebpf: false } }), all, 'profiles need them too')
  const off = { agent: { ebpf: { enabled: false }, profiling: false } }
  assert.deepEqual(added(off), ['DAC_READ_SEARCH', 'SYS_PTRACE'])
  assert.ok(!added({ agent: { profiling: { enabled: false } } }).includes('SYSLOG'))
  assert.equal(added({}, { privileged: true }), undefined)
})

test('the constraints of OpenShift allow what the pod asks for', { skip: withoutHelmRender }, () => {
  const sets = [{}, { privileged: true }, { agent: { hostNetwork: true, extraCapabilities: ['SYS_ADMIN'] } }]
  const all = renderChart(sets.map(each => ({ values: [{ openshift: { enabled: true }, ...each }] })))
  for (const result of all) {
    const objects = objectsOf(result)
    const allowed = workloadOf(objects, 'SecurityContextConstraints')
    const { spec } = workloadOf(objects, 'DaemonSet').spec.template
    const { privileged, capabilities, allowPrivilegeEscalation = true } = spec.containers[0].securityContext
    assert.equal(allowed.allowPrivilegedContainer, privileged)
    assert.deepEqual(allowed.allowedCapabilities, capabilities?.add ?? [])
    assert.equal(allowed.allowPrivilegeEscalation, allowPrivilegeEscalation)
    assert.equal(allowed.allowHostNetwork, spec.hostNetwork ?? false)
    assert.equal(allowed.allowHostPID, spec.hostPID)
    for (const volume of spec.volumes)
      assert.ok(
        allowed.volumes.includes(Object.keys(volume).find(key => key !== 'name')),
        JSON.stringify(volume),
      )
    assert.deepEqual(allowed.users, ['system:serviceaccount:svc:svc'])
  }
})

test('OpenShift gives the collector a user of its own range', { skip: withoutHelmRender }, () => {
  const values = [{ collector: { enabled: true } }]
  const [elsewhere, asked, found] = renderChart([
    { values },
    { values: [...values, { openshift: { enabled: true } }] },
    { values, apiVersions: ['security.openshift.io/v1/SecurityContextConstraints'] },
  ]).map(each => workloadOf(objectsOf(each), 'StatefulSet').spec.template.spec.securityContext)
  const { runAsUser, runAsGroup, fsGroup, ...others } = elsewhere
  assert.deepEqual([runAsUser, runAsGroup, fsGroup], [65532, 65532, 65532])
  assert.deepEqual([asked, found], [others, others])
})

test('a monitor asks where svc answers, as its user says', { skip: withoutHelmRender }, () => {
  const endpointsOf = (...values: readonly object[]) => {
    const [result] = renderChart([{ values: [{ serviceMonitor: { enabled: true } }, ...values] }])
    return workloadOf(objectsOf(result!), 'ServiceMonitor').spec.endpoints
  }
  const tls = { enabled: true, cert_file: '/a', key_file: '/b' }
  const own = { action: 'labeldrop', regex: 'pod' }
  const [management, metrics] = endpointsOf(
    { config: { self_telemetry: { tls } } },
    { serviceMonitor: { interval: '30s', endpoint: { interval: '5s', relabelings: [own] } } },
  )
  const node = { sourceLabels: ['__meta_kubernetes_pod_node_name'], targetLabel: 'instance' }
  const common = { interval: '5s', relabelings: [node, own] }
  const authorization = { type: 'Bearer', credentials: { name: 'svc-auth', key: 'token' } }
  assert.deepEqual(management, {
    port: 'management',
    path: '/metrics',
    scheme: 'https',
    authorization,
    ...common,
  })
  assert.deepEqual(metrics, { port: 'metrics', ...common })
  const local = { config: { self_telemetry: { listen: '127.0.0.1:19090' } }, agent: { hostNetwork: true } }
  assert.deepEqual(
    endpointsOf(local).map(({ port }: KubeObject) => port),
    ['metrics'],
  )
})

test('the management API asks for a token that outlives upgrades, is yours, or is none', {
  skip: withoutHelmRender,
}, () => {
  const values = [{ collector: { enabled: true }, serviceMonitor: { enabled: true } }]
  const existing = [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'svc-auth', namespace: 'svc' },
      data: { token: 'a2VwdA==' },
    },
  ]
  const [first, other, again, named, off, ownToken, noApi] = renderChart([
    { values },
    { values },
    { values, existing },
    { values: [...values, { auth: { existingSecret: 'mine' } }] },
    { values: [...values, { auth: { enabled: false } }] },
    { values: [...values, { config: { self_telemetry: { auth: { bearer_token: 'own' } } } }] },
    { values: [...values, { config: { self_telemetry: false } }] },
  ]).map(result => ({ notes: result.files!['templates/NOTES.txt']!, objects: objectsOf(result) }))
  const tokens = ({ objects }: { objects: readonly KubeObject[] }) =>
    objects.filter(({ kind }) => kind === 'Secret').map(({ data }) => data.token as string)
  const [token] = tokens(first!)
  assert.match(Buffer.from(token!, 'base64').toString(), /^[A-Za-z0-9]{48}$/)
  assert.notDeepEqual(tokens(other!), [token])
  assert.deepEqual(tokens(again!), ['a2VwdA=='])
  for (const none of [named, off, ownToken, noApi]) assert.deepEqual(tokens(none!), [])

  const usesOf = ({ objects }: { objects: readonly KubeObject[] }) => ({
    volumes: objects
      .filter(({ kind }) => /Set$/.test(kind))
      .map(({ spec }) => spec.template.spec.volumes.find((each: KubeObject) => each.name === 'auth')?.secret)
      .map(secret => secret?.secretName),
    asked: objects
      .filter(({ kind }) => kind === 'ServiceMonitor')
      .flatMap(({ spec }) => spec.endpoints)
      .filter(({ port }: KubeObject) => port === 'management')
      .map(({ authorization }: KubeObject) => authorization?.credentials),
  })
  const all = (name: string) => ({
    volumes: [name, name],
    asked: [1, 2].map(() => ({ name, key: 'token' })),
  })
  assert.deepEqual(usesOf(first!), all('svc-auth'))
  assert.deepEqual(usesOf(named!), all('mine'))
  for (const none of [off, ownToken, noApi])
    for (const each of Object.values(usesOf(none!)).flat()) assert.equal(each, undefined)
  assert.match(
    first!.notes,
    /kubectl -n svc get secret svc-auth -o go-template='\{\{\.data\.token \| base64decode\}\}'/,
  )
  assert.match(named!.notes, /get secret mine /)
  assert.doesNotMatch(off!.notes, /secret/)
})

test('only where nothing is to receive anything do the notes say so', { skip: withoutHelmRender }, () => {
  const isSaid = (values: object) =>
    /Nothing leaves the cluster/.test(renderChart([{ values: [values] }])[0]!.files!['templates/NOTES.txt']!)
  const endpoint = 'collector.example:4317'
  assert.equal(isSaid({}), true)
  for (const values of [
    { config: { otlp: { endpoint } } },
    { config: { otlp: { traces: { endpoint } } } },
    { agent: { config: { otlp: { endpoint } } } },
    { agent: { env: [{ name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: endpoint }] } },
  ])
    assert.equal(isSaid(values), false, JSON.stringify(values))
})

test('a template says nothing of the program that the table of facts has', () => {
  const folder = join(chart, 'templates')
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(yaml|tpl|txt)$/.test(file) || file === '_generated.tpl') continue
    const text = readFileSync(join(folder, file), 'utf8')
    for (const typed of [
      /\b(19090|9100)\b/,
      /\/(healthz|livez|readyz?)"/,
      /\/var\/lib|\/run\/svc|\/etc\/svc/,
    ])
      assert.doesNotMatch(text, typed, file)
    for (const { capabilities = [] } of table)
      for (const each of capabilities) assert.ok(!new RegExp(`\\b${each}\\b`).test(text), `${file}: ${each}`)
  }
})

/** What each workload, and the test of the chart, runs. */
function runsOf(objects: readonly KubeObject[]): Run[] {
  return objects.flatMap(workload => {
    const spec = workload.kind === 'Pod' ? workload.spec : workload.spec?.template?.spec
    if (spec === undefined) return []
    const name = spec.volumes.find((each: KubeObject) => each.name === 'config').configMap.name
    const text = objects.find(each => each.kind === 'ConfigMap' && each.metadata.name === name)!.data[
      'config.yaml'
    ]
    const container = spec.containers[0]
    return [{ workload: { ...workload, spec }, container, config: configOf(text, container) }]
  })
}

/** Read as the agent in the pod reads it: strictly, with the variables of its container. */
function configOf(text: string, container: KubeObject): Config {
  const path = join(directory, 'config.yaml')
  writeFileSync(path, text.replaceAll(/\/etc\/svc-(secret|auth)/g, `${directory}/$1`))
  const env = Object.fromEntries(
    container.env.map(({ name, value }: { name: string; value?: string }) => [name, value ?? 'given']),
  )
  const { config, problems, warnings } = loadConfig({ path, explicit: true, env })
  assert.deepEqual([problems, warnings], [[], []])
  return config
}

function holdToProgram({ workload, container, config }: Run, objects: readonly KubeObject[]): void {
  const line = parseArguments(container.args, commands)
  assert.notEqual(typeof line, 'string', String(line))
  const { spec } = workload
  assert.equal(spec.enableServiceLinks, false)
  const isAgent = spec.hostPID === true
  assert.equal(config.mode, isAgent ? 'agent' : 'collector')
  if (workload.kind !== 'Pod') {
    const { self_telemetry: api, agent } = config
    const listen = {
      ...(api.enabled && { management: api.listen }),
      ...(isAgent && agent.nodeexporter.enabled && { metrics: agent.nodeexporter.listen_address }),
    }
    const ports = (container.ports ?? []).map((each: KubeObject) => [each.name, each.containerPort])
    assert.deepEqual(
      ports,
      Object.entries(listen).map(([name, at]) => [name, Number(/\d+$/.exec(at)![0])]),
    )
    assert.equal(container.livenessProbe !== undefined, api.enabled)
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { httpGet } = container[probe] ?? {}
      if (httpGet === undefined) continue
      assert.ok(probePaths.includes(httpGet.path), httpGet.path)
      assert.equal(httpGet.scheme === 'HTTPS', api.tls.enabled)
      // It asks whether all receivers answer, and would hold up a rollout for one that does not.
      assert.doesNotMatch(httpGet.path, /ready/)
    }
    for (const monitor of objects.filter(each => /Monitor$/.test(each.kind)))
      for (const { port, path = '/metrics' } of monitor.spec.endpoints ?? monitor.spec.podMetricsEndpoints)
        assert.equal(path, port === 'management' ? api.path : '/metrics')
    const takes = endMs(config.pipeline.operations.shutdown.timeout)
    assert.ok(spec.terminationGracePeriodSeconds * 1000 >= takes, `it ends within ${takes} ms`)
  }
  holdPlaces(spec, container, config, isAgent)
  const source = readFileSync(
    join(
      root,
      isAgent
        ? 'src/identity/discovery/kubernetes/kubernetes-source.ts'
        : 'src/signals/metrics/scraping/shard.ts',
    ),
    'utf8',
  )
  for (const { name } of container.env)
    assert.ok(name.startsWith('SVC_') || source.includes(`.${name}`), `who reads ${name}?`)
}

function holdPlaces(spec: KubeObject['spec'], container: KubeObject, config: Config, isAgent: boolean): void {
  const mounts: readonly { mountPath: string; readOnly?: boolean; name: string }[] = container.volumeMounts
  const mountOf = (path: string) =>
    mounts
      .filter(({ mountPath }) => path === mountPath || path.startsWith(`${mountPath}/`))
      .sort((a, b) => b.mountPath.length - a.mountPath.length)[0]
  const { agent, pipeline, self_telemetry: api } = config
  assert.equal(container.securityContext.readOnlyRootFilesystem, true)
  const written = [pipeline.export.queue.directory, api.admin_socket, agent.logs.position_file]
  for (const path of written) assert.equal(mountOf(path)?.readOnly ?? false, false, `${path} can be written`)
  for (const path of written) assert.ok(mountOf(path), `${path} is no volume`)
  assert.ok(mountOf('/etc/svc/config.yaml')!.readOnly)
  const uid = spec.securityContext?.runAsUser ?? container.securityContext.runAsUser
  if (!isAgent) {
    if (uid !== undefined)
      assert.equal(uid, Number(/svc:x:(\d+)/.exec(imageSources())![1]), 'the user of the image')
    assert.deepEqual(
      spec.volumes.filter((each: KubeObject) => each.hostPath),
      [],
    )
    return
  }
  assert.equal(uid, 0, 'capabilities that are added are for root alone')
  const read = [...Object.values(agent.nodeexporter.path), ...agent.profiling.symbols.debuginfo_dirs]
  if (agent.logs.enabled) read.push('/var/log/pods')
  for (const { faults } of table)
    for (const { hints } of Object.values(faults) as { hints: { kubernetes?: string } }[]) {
      // Debug information is below the host's root, and the configuration says so.
      const place = /mounted at (\/\S+)/.exec(hints.kubernetes ?? '')?.[1]
      if (place !== undefined && place !== '/usr/lib/debug') read.push(place)
    }
  for (const path of read) assert.ok(mountOf(path), `${path} is not the host's`)
  const ofHost = spec.volumes.filter((each: KubeObject) => each.hostPath).map((each: KubeObject) => each.name)
  for (const { name, readOnly } of mounts)
    assert.equal(ofHost.includes(name) && name !== 'state', ofHost.includes(name) && readOnly === true, name)
}

function imageSources(): string {
  const folder = join(root, 'tools/package')
  return readdirSync(folder)
    .map(name => readFileSync(join(folder, name), 'utf8'))
    .join()
}

function workloadOf(objects: readonly KubeObject[], kind: string): KubeObject {
  const found = objects.filter(each => each.kind === kind)
  assert.equal(found.length, 1, kind)
  return found[0]!
}

/** Paths of the values that a schema knows, without those of free trees. */
function pathsOf(node: KubeObject, at = ''): Set<string> {
  const entries = Object.entries((node.properties ?? {}) as Record<string, KubeObject>)
  if (entries.length === 0) return new Set(at === '' ? [] : [at])
  return new Set(entries.flatMap(([name, each]) => [...pathsOf(each, at === '' ? name : `${at}.${name}`)]))
}

/** The same of values: free trees and lists end where the schema ends. */
function leavesOf(values: object, at = ''): Set<string> {
  const free = /\.(requests|limits|nodeSelector|affinity|config)$|^(labels|config)$/
  return new Set(
    Object.entries(values).flatMap(([name, each]) => {
      const path = at === '' ? name : `${at}.${name}`
      const isTree = typeof each === 'object' && !Array.isArray(each) && Object.keys(each).length > 0
      return isTree && !free.test(path) ? [...leavesOf(each, path)] : [path]
    }),
  )
}

test('the runtime’s seccomp profile holds where all runtimes of that Kubernetes allow what svc needs', {
  skip: withoutHelmRender,
}, () => {
  const openshift = { openshift: { enabled: true } }
  const cases = [
    ['v1.33.1', '', 'Unconfined', 'unconfined'],
    ['v1.36.0', '', 'RuntimeDefault', 'runtime/default'],
    ['v1.36.0-gke.100', '', 'RuntimeDefault', 'runtime/default'],
    ['v1.33.1', 'RuntimeDefault', 'RuntimeDefault', 'runtime/default'],
    ['v1.37.2', 'Unconfined', 'Unconfined', 'unconfined'],
  ] as const
  const all = renderChart(
    cases.map(([kubeVersion, seccompProfile]) => ({
      kubeVersion,
      values: [openshift, { agent: { seccompProfile } }],
    })),
  )
  for (const [i, [kubeVersion, value, profile, constraint]] of cases.entries()) {
    const objects = objectsOf(all[i]!)
    const text = JSON.stringify(objects.find(({ kind }) => kind === 'DaemonSet'))
    const told = [...text.matchAll(/"seccompProfile":\{"type":"(\w+)"\}/g)].map(([, type]) => type)
    assert.deepEqual(told, [profile], `${kubeVersion} ${value}`)
    const constraints = objects.find(({ kind }) => kind === 'SecurityContextConstraints') as unknown as {
      seccompProfiles: string[]
    }
    assert.deepEqual(constraints.seccompProfiles, [constraint], `${kubeVersion} ${value}`)
  }
})
