// What an API server and a kubelet would refuse of manifests, and what they would take and never work.

import type { KubeObject } from './helm-objects.ts'

const kinds = new Set([
  'v1 ConfigMap',
  'v1 Namespace',
  'v1 Pod',
  'v1 Secret',
  'v1 Service',
  'v1 ServiceAccount',
  'apps/v1 DaemonSet',
  'apps/v1 StatefulSet',
  'monitoring.coreos.com/v1 PodMonitor',
  'monitoring.coreos.com/v1 ServiceMonitor',
  'networking.k8s.io/v1 NetworkPolicy',
  'policy/v1 PodDisruptionBudget',
  'policy/v1beta1 PodDisruptionBudget',
  'rbac.authorization.k8s.io/v1 ClusterRole',
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding',
  'security.openshift.io/v1 SecurityContextConstraints',
])
const ofCluster = /^(Namespace|ClusterRole|ClusterRoleBinding|SecurityContextConstraints)$/

const part = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'
const key = new RegExp(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?${part}$`)
const labelValue = new RegExp(`^(${part})?$`)
const dnsLabel = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

// biome-ignore lint/suspicious/noExplicitAny: manifests are looked into as they are
type Any = Record<string, any>

/** A sentence for each fault; none for manifests that are good. */
export function faultsOf(objects: readonly KubeObject[]): string[] {
  const faults: string[] = []
  const names = new Set<string>()
  for (const object of objects) {
    const { apiVersion, kind, metadata } = object
    const where = `${kind} ${metadata.name}`
    const say = (fault: string) => faults.push(`${where}: ${fault}`)
    if (names.has(where)) say('is there twice')
    names.add(where)
    if (!kinds.has(`${apiVersion} ${kind}`)) say(`${apiVersion} has no such kind`)
    if (!dnsLabel.test(metadata.name) && !/^ClusterRole/.test(kind)) say('its name is none')
    if (ofCluster.test(kind) === (metadata.namespace !== undefined)) say('has a namespace, or lacks one')
    eachMap(object, (at, name, value) => {
      if (value === null && name !== 'priority') say(`${name} is null`)
      if (name !== 'labels' && name !== 'matchLabels' && name !== 'annotations') return
      for (const [each, text] of Object.entries(at[name] as Any)) {
        if (!key.test(each)) say(`"${each}" is no key of ${name}`)
        if (typeof text !== 'string') say(`${name} ${each} is no text`)
        else if (name !== 'annotations' && !labelValue.test(text)) say(`"${text}" is no value of a label`)
      }
    })
    for (const fault of kindFaults(object, objects)) say(fault)
  }
  return faults
}

function* kindFaults(object: KubeObject, all: readonly KubeObject[]): Generator<string> {
  const { kind, spec } = object
  const named = (of: string, name: string) =>
    all.find(each => each.kind === of && each.metadata.name === name)
  if (kind === 'DaemonSet' || kind === 'StatefulSet') {
    if (!matches(spec.selector.matchLabels, spec.template.metadata.labels)) yield 'selects not its own pods'
    // The controller puts a hash of ten characters behind the name, in a label.
    if (object.metadata.name.length > 52) yield 'its name leaves no room for a hash'
    yield* podFaults(spec.template.spec, all, spec.volumeClaimTemplates ?? [])
    if (kind === 'StatefulSet' && named('Service', spec.serviceName) === undefined) yield 'has no service'
  } else if (kind === 'Pod') yield* podFaults(spec, all, [])
  else if (kind === 'Service') {
    const template = selected(spec.selector, all)
    if (template === undefined) yield 'selects no pods'
    else if (spec.ports.length === 0) yield 'has no ports'
    else
      for (const { targetPort } of spec.ports)
        if (!portNames(template.spec).has(targetPort)) yield `the pods have no port ${targetPort}`
  } else if (kind === 'PodDisruptionBudget' || kind === 'NetworkPolicy') {
    const { matchLabels } = spec.selector ?? spec.podSelector
    if (selected(matchLabels, all) === undefined) yield 'selects no pods'
  } else if (kind === 'ServiceMonitor' || kind === 'PodMonitor') {
    const template = selected(spec.selector.matchLabels, all)
    for (const { port } of spec.endpoints ?? spec.podMetricsEndpoints)
      if (template === undefined || !portNames(template.spec).has(port)) yield `no pod has a port ${port}`
  } else if (kind === 'ClusterRoleBinding') {
    if (named('ClusterRole', object.roleRef.name) === undefined) yield 'binds a role that is not there'
  } else if (kind === 'ClusterRole') {
    for (const { verbs } of object.rules)
      for (const verb of verbs) if (!['get', 'list', 'watch'].includes(verb)) yield `its rules give ${verb}`
    if (object.rules.length === 0) yield 'gives nothing'
  }
}

function* podFaults(spec: Any, all: readonly KubeObject[], claims: readonly Any[]): Generator<string> {
  const volumes = new Map<string, Any>()
  for (const volume of [...(spec.volumes ?? []), ...claims.map(each => each.metadata)]) {
    if (volumes.has(volume.name)) yield `has two volumes ${volume.name}`
    if (!dnsLabel.test(volume.name)) yield `"${volume.name}" is no name of a volume`
    volumes.set(volume.name, volume)
    const { configMap, hostPath } = volume
    if (configMap && !all.some(each => each.kind === 'ConfigMap' && each.metadata.name === configMap.name))
      yield `there is no ConfigMap ${configMap.name}`
    if (hostPath && !hostPath.path.startsWith('/')) yield `${hostPath.path} is no path of a host`
  }
  const used = new Set<string>()
  for (const container of spec.containers) {
    const paths = new Set<string>()
    for (const { name, mountPath } of container.volumeMounts) {
      used.add(name)
      if (!volumes.has(name)) yield `mounts ${name}, which is no volume`
      if (paths.has(mountPath)) yield `mounts two volumes at ${mountPath}`
      paths.add(mountPath)
    }
    const ports = portNames({ containers: [container] })
    for (const name of ports) if (!/^[a-z0-9-]{1,15}$/.test(name)) yield `"${name}" is no name of a port`
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { port } = container[probe]?.httpGet ?? container[probe]?.tcpSocket ?? {}
      if (container[probe] !== undefined && !ports.has(port)) yield `${probe} asks at no port of it`
    }
    const variables = (container.env ?? []).map((each: Any) => each.name)
    if (new Set(variables).size < variables.length) yield 'a variable is there twice'
    const { privileged, allowPrivilegeEscalation, capabilities } = container.securityContext
    const isAdmin = capabilities?.add?.includes('SYS_ADMIN')
    if (allowPrivilegeEscalation === false && (privileged === true || isAdmin))
      yield 'cannot have so many rights without their escalation'
  }
  for (const name of volumes.keys()) if (!used.has(name)) yield `mounts the volume ${name} nowhere`
}

function portNames(spec: Any): Set<string> {
  return new Set(
    spec.containers.flatMap(({ ports = [] }: Any) => ports.map(({ name }: Any) => name as string)),
  )
}

/** The first template of pods that has these labels. */
function selected(labels: Any, all: readonly KubeObject[]): Any | undefined {
  const templates = all.map(({ spec }) => spec?.template).filter(template => template !== undefined)
  return templates.find(({ metadata }) => matches(labels, metadata.labels))
}

function matches(selector: Any, labels: Any): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value)
}

function eachMap(node: unknown, visit: (map: Any, name: string, value: unknown) => void): void {
  if (typeof node !== 'object' || node === null) return
  for (const [name, value] of Object.entries(node)) {
    visit(node as Any, name, value)
    eachMap(value, visit)
  }
}
