// Combinations of values that a chart must take, each beside what it is to show.

import type { Rendering } from './helm-chart.ts'

const endpoint = { otlp: { endpoint: 'collector.example:4317' } }

export const combinations: Readonly<Record<string, Rendering>> = {
  'nothing set': {},
  'a privileged agent': { values: [{ privileged: true }] },
  'the network of the node': {
    values: [
      {
        agent: { hostNetwork: true, priorityClassName: 'system-node-critical' },
        config: {
          self_telemetry: { listen: '127.0.0.1:19191' },
          agent: { nodeexporter: { listen_address: ':9101' } },
        },
      },
    ],
  },
  'host metrics alone': {
    values: [
      { config: { agent: { ebpf: false, profiling: { enabled: false }, logs: false, discovery: false } } },
    ],
  },
  'an old kernel and Docker': {
    kubeVersion: 'v1.20.2',
    values: [
      { agent: { extraCapabilities: ['SYS_ADMIN', 'SYS_RESOURCE'], dockerLogs: true, seLinuxType: '' } },
    ],
  },
  'a receiver with a secret': {
    values: [
      {
        existingSecret: 'svc-otlp',
        config: {
          otlp: {
            endpoint: 'https://otlp.example',
            headers: { authorization: `\${file:/etc/svc-secret/token}` },
          },
          pipeline: { export: { queue: { max_size_bytes: 2_000_000_000 } } },
        },
        agent: {
          env: [{ name: 'SVC_LOG_LEVEL', value: 'debug' }],
          envFrom: [{ secretRef: { name: 'more' } }],
        },
      },
    ],
  },
  'everything beside it': {
    apiVersions: ['security.openshift.io/v1/SecurityContextConstraints'],
    values: [
      {
        labels: { team: 'platform' },
        serviceMonitor: { enabled: true, interval: '30s', labels: { release: 'prometheus' } },
        podMonitor: { enabled: true, endpoint: { scheme: 'https' } },
        networkPolicy: {
          enabled: true,
          from: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
        },
        collector: { enabled: true, replicas: 3, replicasPerTarget: 2 },
        config: endpoint,
      },
    ],
  },
  'a collector alone': {
    values: [
      {
        agent: { enabled: false },
        platform: 'fargate',
        collector: {
          enabled: true,
          replicas: 2,
          persistence: { size: '10Gi', storageClassName: 'fast' },
          config: {
            collectors: {
              prometheus: {
                kubernetes_sd: [{ role: 'endpointslice' }, { role: 'node' }],
                scrape_configs: [
                  {
                    job_name: 'pods',
                    kubernetes_sd_configs: [{ role: 'pod', attach_metadata: { node: true } }],
                  },
                  { job_name: 'ingresses', kubernetes_sd_configs: [{ role: 'ingress' }] },
                ],
              },
            },
          },
        },
      },
    ],
  },
  'a collector without a disk': {
    values: [{ agent: { enabled: false }, collector: { enabled: true, persistence: { enabled: false } } }],
  },
  'no management API': {
    values: [
      { config: { self_telemetry: false } },
      { config: { agent: { nodeexporter: { enabled: true } } } },
    ],
  },
  'TLS of the management API': {
    values: [
      {
        config: {
          self_telemetry: {
            listen: '0.0.0.0:19443',
            tls: { enabled: true, cert_file: '/etc/svc-secret/tls.crt', key_file: '/etc/svc-secret/tls.key' },
          },
        },
        existingSecret: 'svc-tls',
      },
    ],
  },
  'accounts, rights and a registry of one’s own': {
    name: 'a-release-with-a-name-that-is-as-long-as-helm-lets-be',
    namespace: 'observability',
    values: [
      {
        serviceAccount: { create: false },
        rbac: { create: false },
        image: { repository: 'registry.example.com/svc', digest: `sha256:${'0'.repeat(64)}` },
        imagePullSecrets: [{ name: 'login' }],
        agent: { serviceAccountName: 'mine', affinity: { podAntiAffinity: {} }, runtimeClassName: 'nvidia' },
        collector: { enabled: true, podDisruptionBudget: { maxUnavailable: '50%' } },
      },
    ],
  },
  'agents that scrape their own node': {
    values: [
      {
        agent: {
          extraRules: [{ apiGroups: [''], resources: ['nodes/metrics'], verbs: ['get'] }],
          config: {
            collectors: {
              prometheus: {
                scrape_configs: [
                  {
                    job_name: 'own',
                    kubernetes_sd_configs: [
                      { role: 'pod', selectors: [{ role: 'pod', field: `spec.nodeName=\${NODE_NAME}` }] },
                    ],
                  },
                ],
              },
            },
          },
        },
      },
    ],
  },
}
