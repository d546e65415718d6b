import type { SettingsOf } from '../source.ts'
import type { WrittenRule } from './relabel-rules.ts'

type Role = SettingsOf<'kubernetes'>['role']

/** Object whose annotations apply: endpoints have none written by people. */
const annotated: Readonly<Record<Role, string>> = {
  pod: 'pod',
  service: 'service',
  endpoints: 'service',
  endpointslice: 'service',
  node: 'node',
  ingress: 'ingress',
}

/** Labels that identify a target, by the label on its series. */
const identityLabels: Readonly<Record<string, string>> = {
  namespace: '__meta_kubernetes_namespace',
  pod: '__meta_kubernetes_pod_name',
  service: '__meta_kubernetes_service_name',
  ingress: '__meta_kubernetes_ingress_name',
}

/** Sources of the job name, the best last: the object itself, its controller, its application label. */
const jobNames: Readonly<Record<string, readonly WrittenRule[]>> = {
  pod: [
    copy('__meta_kubernetes_pod_name', 'job'),
    copy('__meta_kubernetes_pod_controller_name', 'job'),
    {
      source_labels: ['__meta_kubernetes_pod_controller_kind', '__meta_kubernetes_pod_controller_name'],
      // Without the suffix that differs for each rollout.
      regex: 'ReplicaSet;(.+)-[0-9a-z]{1,10}',
      target_label: 'job',
    },
    copy('__meta_kubernetes_pod_label_app', 'job'),
    copy('__meta_kubernetes_pod_label_app_kubernetes_io_name', 'job'),
  ],
  service: namesOf('service'),
  node: [],
  ingress: namesOf('ingress'),
}

function namesOf(object: string): WrittenRule[] {
  return ['name', 'label_app', 'label_app_kubernetes_io_name'].map(name =>
    copy(`__meta_kubernetes_${object}_${name}`, 'job'),
  )
}

function copy(from: string, to: string, regex = '(.+)'): WrittenRule {
  return { source_labels: [from], regex, target_label: to }
}

/** The `prometheus.io/*` annotations as relabelling rules, as in Prometheus' example for Kubernetes. */
export function annotationRules(role: Role): WrittenRule[] {
  const object = annotated[role]
  const annotation = (name: string) => `__meta_kubernetes_${object}_annotation_prometheus_io_${name}`
  const withPort = (regex: string, replacement: string): WrittenRule => ({
    source_labels: ['__address__', annotation('port')],
    regex: `${regex};(\\d+)`,
    target_label: '__address__',
    replacement,
  })
  return [
    { source_labels: [annotation('scrape')], regex: 'true', action: 'keep' },
    ...(role === 'pod' || role === 'endpoints' || role === 'endpointslice' ? running : []),
    ...(role === 'ingress'
      ? [
          copy('__meta_kubernetes_ingress_scheme', '__scheme__', '(https?)'),
          copy('__meta_kubernetes_ingress_path', '__metrics_path__'),
        ]
      : []),
    copy(annotation('scheme'), '__scheme__', '(https?)'),
    copy(annotation('path'), '__metrics_path__'),
    withPort('([^:;[\\]]+)(?::\\d+)?', '$1:$2'),
    withPort('(\\[[^;\\]]+\\])(?::\\d+)?', '$1:$2'),
    // An IPv6 address without a port has no brackets.
    withPort('([0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*)', '[$1]:$2'),
    {
      action: 'labelmap',
      regex: `${annotation('param')}_(.+)`,
      replacement: '__param_$1',
    },
    ...Object.entries(identityLabels).map(([to, from]) => copy(from, to)),
    copy(object === 'node' ? '__meta_kubernetes_node_name' : '__meta_kubernetes_pod_node_name', 'node'),
    ...jobNames[object]!,
  ]
}

/** Excludes pods that have ended, and init containers. */
const running: readonly WrittenRule[] = [
  { source_labels: ['__meta_kubernetes_pod_phase'], regex: 'Succeeded|Failed', action: 'drop' },
  { source_labels: ['__meta_kubernetes_pod_container_init'], regex: 'true', action: 'drop' },
]
