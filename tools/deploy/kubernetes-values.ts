// The JSON Schema of the chart's values, including the configuration; draft 7 as in Helm 3.
import { jsonSchema } from '../../src/config/index.ts'

type Json = Readonly<Record<string, unknown>>

const text = { type: 'string' }
const flag = { type: 'boolean' }
const count = { type: 'integer', minimum: 1 }
const tree = { type: 'object' }
const trees = { type: 'array', items: tree }
const texts = { type: 'object', additionalProperties: text }
const config = { $ref: '#/definitions/config' }
const shortName = { type: 'string', maxLength: 40, pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$' }
const kubeName = { type: 'string', maxLength: 253, pattern: '^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$' }
const quantity = { type: ['string', 'integer'], pattern: '^[0-9]+(\\.[0-9]+)?(m|k|[KMGT]i?)?$' }
const intOrPercent = {
  anyOf: [
    { type: 'integer', minimum: 0 },
    { type: 'string', pattern: '^[0-9]+%$' },
  ],
}
const interval = { type: 'string', pattern: '^([0-9]+(ms|s|m|h))*$' }
const amounts = { type: 'object', additionalProperties: quantity }

/** Shared by agent and collector. */
const pod = {
  enabled: flag,
  config,
  serviceAccountName: kubeName,
  extraRules: trees,
  env: trees,
  envFrom: trees,
  resources: strict({ requests: amounts, limits: amounts, claims: trees }),
  terminationGracePeriodSeconds: count,
  priorityClassName: kubeName,
  nodeSelector: texts,
  tolerations: trees,
  affinity: tree,
  podLabels: texts,
  podAnnotations: texts,
  extraVolumes: trees,
  extraVolumeMounts: trees,
}

const agent = strict({
  ...pod,
  hostNetwork: flag,
  dockerLogs: flag,
  stateHostPath: { type: 'string', pattern: '^/.' },
  extraCapabilities: { type: 'array', items: { type: 'string', pattern: '^(?:[ABD-Z]|C[B-Z])[A-Z_]*$' } },
  seLinuxType: text,
  seccompProfile: { enum: ['', 'RuntimeDefault', 'Unconfined'] },
  updateStrategy: strict({
    type: { enum: ['RollingUpdate', 'OnDelete'] },
    rollingUpdate: strict({ maxUnavailable: intOrPercent }),
  }),
  runtimeClassName: kubeName,
})

const collector = strict({
  ...pod,
  replicas: count,
  replicasPerTarget: count,
  persistence: strict({ enabled: flag, size: quantity, storageClassName: kubeName }),
  podDisruptionBudget: strict({ enabled: flag, maxUnavailable: intOrPercent }),
})

const monitor = strict({ enabled: flag, interval, labels: texts, endpoint: tree })

const values = {
  nameOverride: shortName,
  fullnameOverride: shortName,
  labels: texts,
  image: strict({
    repository: { type: 'string', minLength: 1 },
    tag: text,
    digest: { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' },
    pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
  }),
  imagePullSecrets: trees,
  platform: { enum: ['', 'nodes', 'fargate', 'autopilot'] },
  config,
  existingSecret: kubeName,
  auth: strict({ enabled: flag, existingSecret: kubeName }),
  privileged: flag,
  serviceAccount: strict({ create: flag, annotations: texts }),
  rbac: strict({ create: flag }),
  agent,
  collector,
  serviceMonitor: monitor,
  podMonitor: monitor,
  networkPolicy: strict({ enabled: flag, from: trees }),
  openshift: strict({ enabled: flag }),
  test: strict({ nodeName: kubeName }),
  // Helm's own, for subcharts.
  global: tree,
}

export function valuesSchema(): Json {
  const { $defs, $schema: _, ...root } = jsonSchema() as { $defs: Json; $schema: string; properties: Json }
  // One spelling for each key, so that templates find it: neither `svc: {mode}` nor `selfTelemetry`.
  const { svc: _group, selfTelemetry: _spelling, ...properties } = root.properties
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart svc',
    ...strict(values),
    definitions: { config: bare({ ...root, properties, type: 'object' }) },
    $defs: bare($defs),
  }
}

function strict(properties: Json): Json {
  return { type: 'object', additionalProperties: false, properties }
}

/** Removes texts for readers. */
function bare(node: unknown, isNamed = false): unknown {
  if (Array.isArray(node)) return node.map(each => bare(each))
  if (typeof node !== 'object' || node === null) return node
  const kept = Object.entries(node).filter(([key]) => isNamed || (key !== 'description' && key !== 'default'))
  return Object.fromEntries(
    kept.map(([key, each]) => [key, bare(each, !isNamed && (key === 'properties' || key === '$defs'))]),
  )
}
