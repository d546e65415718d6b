import { resolve } from 'node:path'
import { list } from '../../../../foundation/schema/collections.ts'
import { fileThat } from '../../../../foundation/schema/kinds.ts'
import type { SourceSettings, TargetGroup } from '../scrape-job.ts'
import type { SettingsOf } from '../source.ts'
import { accessFields, accessOf, checkAccess, foreignAccess, urlFault } from './access.ts'
import {
  addressThat,
  anyBoolean,
  anyCount,
  anyDuration,
  anyText,
  entryText,
  labels,
  oneOf,
  textThat,
} from './fields.ts'
import { type FieldFault, form, type Written } from './form.ts'

// Discovery settings in the form of Prometheus (`discovery` of its repository).

const refresh = anyDuration(1000)

const staticConfig = form(
  { targets: list(entryText), labels },
  { what: 'a group of targets (keys targets, labels)' },
)

const fileName = textThat('a file that ends in .json, .yml or .yaml', path => {
  // As in `patFileSDName`: "*" only in the last component, and no deeper.
  if (/^[^*]*(\*[^/]*)?\.(json|yml|yaml)$/i.test(path)) return ''
  return path.includes('*')
    ? '"*" is allowed only in the last part of the path'
    : 'other files are not supported'
})

const fileSd = form(
  { files: list(fileName), refresh_interval: refresh },
  {
    what: 'the keys of file_sd_configs (files, refresh_interval)',
    check: ({ files = [] }, fault) => {
      if (files.length === 0) fault('files', 'is empty; add at least one file')
    },
  },
)

const sourceUrl = addressThat('an http or https URL', urlFault)

const httpSd = form(
  { url: sourceUrl, refresh_interval: refresh, ...accessFields },
  {
    what: 'the keys of http_sd_configs (url, refresh_interval, and those of access)',
    foreign: foreignAccess,
    check(written, fault) {
      if (!written.url) fault('url', 'is missing; set the URL of the target list')
      checkAccess(written, fault)
    },
  },
)

const dnsSd = form(
  {
    names: list(entryText),
    type: oneOf(['SRV', 'A', 'AAAA', 'MX', 'NS']),
    port: anyCount,
    refresh_interval: refresh,
  },
  {
    what: 'the keys of dns_sd_configs (names, type, port, refresh_interval)',
    check({ names = [], type = 'SRV', port = 0 }, fault) {
      if (names.length === 0) fault('names', 'is empty; add at least one name')
      if (type !== 'SRV' && port === 0) fault('port', `is missing; records of type ${type} have no port`)
      if (port > 65_535) fault('port', 'must be at most 65535')
    },
  },
)

const dockerFilter = form({ name: anyText, values: list(entryText) }, { what: 'a filter (name, values)' })

const dockerSd = form(
  {
    host: anyText,
    port: anyCount,
    host_networking_host: anyText,
    match_first_network: anyBoolean,
    filters: list(dockerFilter),
    refresh_interval: refresh,
    ...accessFields,
  },
  {
    what: 'the keys of docker_sd_configs (host, port, filters, refresh_interval)',
    foreign: foreignAccess,
    check(written, fault) {
      if (!written.host) fault('host', 'is missing; use unix:///var/run/docker.sock for the local daemon')
      else if (!/^(unix:\/\/\/|(tcp|http):\/\/[^/])/.test(written.host))
        fault('host', 'use unix:///path, tcp://host:port or http://host:port')
      if ((written.port ?? 0) > 65_535) fault('port', 'must be at most 65535')
      if (written.filters && written.filters.length > 0)
        fault('filters', 'svc lists all containers; use a relabelling rule with action keep')
      refuseAccess(written, 'svc connects to Docker without credentials and TLS; delete the key', fault)
    },
  },
)

const roles = ['pod', 'service', 'endpoints', 'endpointslice', 'node', 'ingress'] as const

/** Selectors by role (`selectRole` of kubernetes.go). */
const selectable: Readonly<Record<string, readonly string[]>> = {
  endpoints: ['pod', 'service', 'endpoints', 'node'],
  endpointslice: ['pod', 'service', 'endpointslice', 'node'],
  pod: ['pod', 'node'],
}

const selector = form(
  { role: oneOf(roles), label: anyText, field: anyText },
  { what: 'a selector (role, label, field)' },
)

const namespaces = form(
  { own_namespace: anyBoolean, names: list(entryText) },
  { what: 'the keys of namespaces (own_namespace, names)' },
)

const attachMetadata = form(
  { node: anyBoolean, namespace: anyBoolean },
  {
    what: 'the keys of attach_metadata (node)',
    check({ namespace }, fault) {
      if (namespace) fault('namespace', 'svc adds no namespace labels; delete it')
    },
  },
)

const kubernetesSd = form(
  {
    api_server: anyText,
    role: oneOf(roles),
    kubeconfig_file: fileThat('any', anyText),
    namespaces,
    selectors: list(selector),
    attach_metadata: attachMetadata,
    ...accessFields,
  },
  {
    what: 'the keys of kubernetes_sd_configs (role, namespaces, selectors, attach_metadata, kubeconfig_file)',
    foreign: foreignAccess,
    check(written, fault) {
      const { role, selectors = [] } = written
      if (role === undefined) fault('role', `is missing; use one of ${roles.join(', ')}`)
      if (written.api_server)
        fault(
          'api_server',
          'svc uses the server of its pod or of kubeconfig_file; delete the key, or set kubeconfig_file',
        )
      refuseAccess(
        written,
        'svc uses the Kubernetes credentials and TLS settings of its pod or of kubeconfig_file; delete the key',
        fault,
      )
      for (const [i, { role: of, label, field }] of selectors.entries()) {
        const at = `selectors[${i}]`
        if (of === undefined) fault(`${at}.role`, 'is missing')
        else if (of === role) {
          if (selectors.findIndex(other => other.role === of) < i)
            fault(`${at}.role`, `duplicate selector for ${of}; join the two with commas`)
        } else if (role && !(selectable[role] ?? []).includes(of))
          fault(`${at}.role`, `role ${role} has no selector for ${of}`)
        else if (label || field)
          fault(
            `${at}.role`,
            `svc supports selectors only for the role itself (${role}); use a relabelling rule for ${of}`,
          )
      }
    },
  },
)

function refuseAccess(written: object, message: string, fault: FieldFault): void {
  const usual: Readonly<Record<string, unknown>> = { follow_redirects: true, enable_http2: true }
  for (const name of Object.keys(accessFields)) {
    const value = (written as Record<string, unknown>)[name]
    if (value !== undefined && value !== '' && value !== false && value !== usual[name]) fault(name, message)
  }
}

/** Supported kinds of discovery, by key. */
export const sourceFields = {
  static_configs: list(staticConfig),
  file_sd_configs: list(fileSd),
  http_sd_configs: list(httpSd),
  dns_sd_configs: list(dnsSd),
  docker_sd_configs: list(dockerSd),
  kubernetes_sd_configs: list(kubernetesSd),
} as const

export type WrittenSources = Written<typeof sourceFields>

/** Kinds of Prometheus (3.8) that svc does not support. */
const foreignSources = new Set(
  `aws azure consul digitalocean dockerswarm ec2 ecs elasticache eureka gce hetzner ionos kuma lightsail linode
  marathon msk nerve nomad openstack outscale ovhcloud puppetdb scaleway serverset stackit triton uyuni vultr`.split(
    /\s+/,
  ),
)

/** Reason why a kind of discovery is not supported; undefined if Prometheus has none with that name. */
export function foreignSource(key: string): string | undefined {
  const name = /^(\w+)_sd_configs$/.exec(key)?.[1]
  return name !== undefined && foreignSources.has(name)
    ? `svc does not support this discovery; use http_sd_configs or file_sd_configs with a list from another program`
    : undefined
}

/** A group of targets from the configuration itself. */
export function staticGroup(
  index: number,
  addresses: readonly string[],
  own: Readonly<Record<string, string>>,
): TargetGroup {
  return {
    source: String(index),
    targets: addresses.map(address => new Map([['__address__', address]])),
    labels: new Map(Object.entries(own)),
  }
}

/** Sources of a job, with the defaults of Prometheus. Relative file paths start at `baseDir`. */
export function sourcesOf(written: WrittenSources, baseDir: string): SourceSettings[] {
  const groups = written.static_configs ?? []
  const fixed = groups.map(({ targets = [], labels = {} }, i) => staticGroup(i, targets, labels))
  return [
    ...(fixed.length > 0 ? [{ kind: 'static', groups: fixed } as const] : []),
    ...(written.file_sd_configs ?? []).map(({ files = [], refresh_interval: every }) => ({
      kind: 'file' as const,
      patterns: files.map(file => resolve(baseDir, file)),
      refreshMs: every || 300_000,
    })),
    ...(written.http_sd_configs ?? []).map(each => ({
      kind: 'http' as const,
      url: each.url ?? '',
      refreshMs: each.refresh_interval || 60_000,
      access: accessOf(each, baseDir),
    })),
    ...(written.dns_sd_configs ?? []).map(each => ({
      kind: 'dns' as const,
      names: each.names ?? [],
      type: each.type ?? 'SRV',
      port: each.port ?? 0,
      refreshMs: each.refresh_interval || 30_000,
    })),
    ...(written.docker_sd_configs ?? []).map(each => ({
      kind: 'docker' as const,
      host: each.host ?? '',
      port: each.port || 80,
      hostNetworkingHost: each.host_networking_host || 'localhost',
      refreshMs: each.refresh_interval || 60_000,
    })),
    ...(written.kubernetes_sd_configs ?? []).map(each => kubernetesSource(each, baseDir)),
  ]
}

type WrittenKubernetes = NonNullable<WrittenSources['kubernetes_sd_configs']>[number]

function kubernetesSource(written: WrittenKubernetes, baseDir: string): SettingsOf<'kubernetes'> {
  const { role = 'pod', kubeconfig_file: file = '', selectors = [] } = written
  const own = selectors.find(each => each.role === role)
  return {
    kind: 'kubernetes',
    role,
    kubeconfigFile: file === '' ? '' : resolve(baseDir, file),
    namespaces: written.namespaces?.names ?? [],
    ownNamespace: written.namespaces?.own_namespace ?? false,
    labelSelector: own?.label ?? '',
    fieldSelector: own?.field ?? '',
    attachNodeMetadata: written.attach_metadata?.node ?? false,
  }
}
