import { setMaxListeners } from 'node:events'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { pause } from '../../../../../foundation/lib/pause.ts'
import { Turn } from '../../../../../foundation/lib/turn.ts'
import type { AccessError, ClusterAccess } from '../../../../../identity/discovery/kubernetes/access.ts'
import { ApiClient } from '../../../../../identity/discovery/kubernetes/api-client.ts'
import type { Fault } from '../../../../../identity/discovery/kubernetes/fault.ts'
import {
  findAccess,
  serviceAccountDirectory,
} from '../../../../../identity/discovery/kubernetes/find-access.ts'
import { ResourceWatch } from '../../../../../identity/discovery/kubernetes/resource-watch.ts'
import { type Timing, usualTiming } from '../../../../../identity/discovery/kubernetes/timing.ts'
import type { SettingsOf, SourceKind, SourceOptions, TargetSource, TargetSourceState } from '../../source.ts'
import { type SourceFault, TargetGroupPublisher } from '../_target-group-publisher.ts'
import { endpointSliceRole } from './endpoint-slice.ts'
import { endpointsRole } from './endpoints.ts'
import { ingressRole } from './ingress.ts'
import { MetaLabels } from './meta-labels.ts'
import { nodeRole, readNodeLabels } from './node.ts'
import { maxObjects, ObjectTable } from './object-table.ts'
import { podRole, readPod } from './pod.ts'
import { readServiceLabels, serviceRole } from './service.ts'
import type { Joined, Resource, Role, Watched, WatchedGroup } from './watched.ts'

type Settings = SettingsOf<'kubernetes'>

/** Time for which changes are collected before groups are updated, in milliseconds. */
const gatherMs = 20

const roles: Readonly<Record<Settings['role'], Role>> = {
  pod: podRole,
  service: serviceRole,
  endpoints: endpointsRole,
  endpointslice: endpointSliceRole,
  node: nodeRole,
  ingress: ingressRole,
}

/** API paths without the namespace. */
const collections: Readonly<Record<Resource, { readonly api: string; readonly inNamespace: boolean }>> = {
  pods: { api: '/api/v1', inNamespace: true },
  services: { api: '/api/v1', inNamespace: true },
  endpoints: { api: '/api/v1', inNamespace: true },
  nodes: { api: '/api/v1', inNamespace: false },
  endpointslices: { api: '/apis/discovery.k8s.io/v1', inNamespace: true },
  ingresses: { api: '/apis/networking.k8s.io/v1', inNamespace: true },
}

export interface KubernetesTargetsOptions extends SourceOptions {
  readonly environment?: NodeJS.ProcessEnv
  readonly serviceAccountDirectory?: string
  readonly timing?: Partial<Timing>
}

/**
 * Targets from the Kubernetes API server, with the labels of Prometheus 3 (kubernetes_sd_config). The objects of a
 * role, and those joined with them, are followed by a list and a watch per namespace. Nothing is reported before all
 * first lists have arrived: without the labels of its service, a target would be a different one.
 *
 * Annotations above 4096 characters and the annotation of `kubectl apply` are not added to labels.
 */
export class KubernetesTargets implements TargetSource {
  readonly #settings: Settings
  readonly #options: KubernetesTargetsOptions
  readonly #timing: Timing
  readonly #role: Role
  readonly #told: TargetGroupPublisher
  readonly #meta = new MetaLabels()
  readonly #stopping = new AbortController()
  readonly #groups: ObjectTable<WatchedGroup>
  /** Objects joined with groups, and access to them. */
  readonly #joins = new Map<Resource, ObjectTable<Watched>>()
  readonly #joined: Joined
  /** Keys of groups by the objects that are joined with them. */
  readonly #byRef = new Map<string, Set<string>>()
  /** Keys of groups with omitted targets. */
  readonly #cut = new Set<string>()
  /** Keys of groups to be updated. */
  readonly #dirty = new Set<string>()
  readonly #watches: ResourceWatch[] = []
  /** Watches without a first list. */
  readonly #awaited = new Set<string>()
  #client: ApiClient | undefined
  #timer: NodeJS.Timeout | undefined
  #busy = false

  constructor(settings: Settings, options: KubernetesTargetsOptions) {
    this.#settings = settings
    this.#options = options
    // Each running request listens to it, and each namespace has a watch.
    setMaxListeners(0, this.#stopping.signal)
    this.#timing = { ...usualTiming, ...options.timing }
    this.#role = roles[settings.role]
    this.#told = new TargetGroupPublisher('kubernetes', options)
    const meta = this.#meta
    const role = this.#role
    const withNode = role.hasNode && settings.attachNodeMetadata
    this.#groups = new ObjectTable({
      read: object => role.read(object, meta, withNode),
      changed: (key, before, now) => this.#changedGroup(key, before, now),
      full: () => this.#full(role.resource),
    })
    const join = <Kept extends Watched>(resource: Resource, read: (object: object) => Kept | undefined) => {
      const isWanted = resource === 'nodes' ? withNode : role.joins.includes(resource)
      if (!isWanted) return undefined
      const table = new ObjectTable<Kept>({
        read,
        changed: key => this.#changedRef(`${resource} ${key}`),
        full: () => this.#full(resource),
      })
      this.#joins.set(resource, table)
      return table
    }
    const pods = join('pods', object => readPod(object as never, meta))
    const services = join('services', object => readServiceLabels(object as never, meta))
    const nodes = join('nodes', object => readNodeLabels(object as never, meta))
    this.#joined = {
      pod: key => pods?.get(key),
      service: key => services?.get(key)?.labels,
      node: name => nodes?.get(name)?.labels,
      cut: key => this.#cut.add(key),
    }
  }

  get state(): TargetSourceState {
    const told = this.#told
    const watches = this.#watches
    const connected = watches.length > 0 && this.#awaited.size === 0 && watches.every(each => each.connected)
    return { ...told.state, connected }
  }

  start(): void {
    void this.#run()
  }

  stop(): void {
    this.#stopping.abort()
    clearTimeout(this.#timer)
    this.#client?.close()
    this.#told.close()
  }

  async #run(): Promise<void> {
    const access = await this.#findAccess()
    if (access === undefined || this.#stopping.signal.aborted) return
    const client = new ApiClient(access, this.#timing.credentialsMs)
    this.#client = client
    const namespaces = new Set(this.#settings.namespaces)
    if (this.#settings.ownNamespace) namespaces.add(access.namespace || 'default')
    const wanted: [Resource, ObjectTable<Watched>, string][] = []
    const { labelSelector, fieldSelector } = this.#settings
    wanted.push([this.#role.resource, this.#groups, selectorOf(labelSelector, fieldSelector)])
    for (const [resource, table] of this.#joins) wanted.push([resource, table, ''])
    const watches = wanted.flatMap(([resource, table, selector]) => {
      const isEverywhere = namespaces.size === 0 || !collections[resource].inNamespace
      return [...(isEverywhere ? [''] : namespaces)].map(namespace =>
        this.#watch(client, { resource, namespace, selector }, table),
      )
    })
    for (const watch of watches) void watch.run()
  }

  /** Retries until it succeeds. */
  async #findAccess(): Promise<ClusterAccess | undefined> {
    const stop = this.#stopping.signal
    const { environment = process.env } = this.#options
    const directory = this.#options.serviceAccountDirectory ?? serviceAccountDirectory
    while (!stop.aborted) {
      const kubeconfig = this.#settings.kubeconfigFile || usualKubeconfig(environment)
      try {
        const access = await findAccess({
          kubeconfig,
          environment,
          serviceAccountDirectory: directory,
          key: 'kubeconfig_file',
        })
        this.#told.report('access', undefined)
        return access
      } catch (error) {
        const { message: reason, hint } = error as AccessError
        const run = 'run svc in a pod, or set kubeconfig_file'
        this.#told.report('access', { reason, hint: hint || run })
        await pause(this.#timing.backoff.maxMs, stop)
      }
    }
    return undefined
  }

  #watch(
    client: ApiClient,
    { resource, namespace, selector }: { resource: Resource; namespace: string; selector: string },
    table: ObjectTable<Watched>,
  ): ResourceWatch {
    const { api } = collections[resource]
    const subject = `${resource} ${namespace}`
    this.#awaited.add(subject)
    const watch = new ResourceWatch({
      client,
      path:
        namespace === ''
          ? `${api}/${resource}`
          : `${api}/namespaces/${encodeURIComponent(namespace)}/${resource}`,
      resource,
      namespace,
      selector,
      keeper: table.keeper(),
      timing: this.#timing,
      stop: this.#stopping.signal,
      report: fault => this.#report(subject, fault),
    })
    this.#watches.push(watch)
    return watch
  }

  /** `fault` is undefined once the watch has its list. */
  #report(subject: string, fault: Fault | undefined): void {
    if (this.#stopping.signal.aborted) return
    this.#told.report(subject, fault)
    if (fault !== undefined) return
    this.#awaited.delete(subject)
    if (this.#awaited.size > 0) return
    if (this.#dirty.size > 0) this.#schedule()
    else if (!this.#busy) this.#told.known()
  }

  #full(resource: Resource): void {
    this.#told.report(`full ${resource}`, {
      reason: `more than ${maxObjects} ${resource}; the rest are left out`,
      hint: 'use narrower namespaces and selectors',
    })
  }

  #changedGroup(key: string, before: WatchedGroup | undefined, now: WatchedGroup | undefined): void {
    for (const ref of before?.refs ?? []) {
      const keys = this.#byRef.get(ref)
      keys?.delete(key)
      if (keys?.size === 0) this.#byRef.delete(ref)
    }
    for (const ref of now?.refs ?? []) {
      const keys = this.#byRef.get(ref)
      if (keys === undefined) this.#byRef.set(ref, new Set([key]))
      else keys.add(key)
    }
    this.#dirty.add(key)
    this.#schedule()
  }

  #changedRef(ref: string): void {
    const keys = this.#byRef.get(ref)
    if (keys === undefined) return
    for (const key of keys) this.#dirty.add(key)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#awaited.size > 0 || this.#timer !== undefined || this.#busy || this.#stopping.signal.aborted)
      return
    this.#timer = setTimeout(() => void this.#make(), gatherMs).unref()
  }

  /** Updates the groups that changed, in slices. */
  async #make(): Promise<void> {
    this.#timer = undefined
    this.#busy = true
    const turn = new Turn(1)
    for (const key of this.#dirty) {
      this.#dirty.delete(key)
      this.#cut.delete(key)
      const group = this.#groups.get(key)?.group(this.#joined)
      if (group === undefined || group.targets.length === 0) this.#told.remove(key)
      else this.#told.put(key, [group])
      const rest = turn.rest()
      if (rest) await rest
      if (this.#stopping.signal.aborted) return
    }
    this.#busy = false
    this.#told.report('cut', tooLarge(this.#role.resource, this.#cut))
    this.#told.known()
  }
}

/** Source kind for `kubernetes_sd_configs`. */
export const kubernetesSource: SourceKind<'kubernetes'> = {
  kind: 'kubernetes',
  open: (settings, options) => new KubernetesTargets(settings, options),
}

function tooLarge(resource: Resource, keys: ReadonlySet<string>): SourceFault | undefined {
  const [first] = keys
  if (first === undefined) return undefined
  const others = keys.size === 1 ? '' : ` and ${keys.size - 1} others`
  return {
    reason: `${resource} ${first}${others} have too many targets; some are left out`,
    hint: 'exclude them by namespaces or selectors, or reduce their addresses and ports',
  }
}

function selectorOf(labelSelector: string, fieldSelector: string): string {
  const parts = { labelSelector, fieldSelector }
  return Object.entries(parts)
    .filter(([, text]) => text !== '')
    .map(([name, text]) => `${name}=${encodeURIComponent(text)}`)
    .join('&')
}

/** Outside of a cluster kubectl's file; '' for our own pod's account, or if there is none. */
function usualKubeconfig({ KUBERNETES_SERVICE_HOST, KUBECONFIG, HOME }: NodeJS.ProcessEnv): string {
  if (KUBERNETES_SERVICE_HOST) return ''
  const [first = ''] = (KUBECONFIG ?? '').split(delimiter)
  const usual = first || join(HOME || homedir(), '.kube', 'config')
  return existsSync(usual) ? usual : ''
}
