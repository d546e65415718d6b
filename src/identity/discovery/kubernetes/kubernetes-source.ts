import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { Backoff } from '../../../foundation/lib/backoff.ts'
import { ByteRoom } from '../../../foundation/lib/byte-room.ts'
import { type JsonObject, objectOf, textOf } from '../../../foundation/lib/json-fields.ts'
import { KnownFaults } from '../../../foundation/lib/known-faults.ts'
import { pause } from '../../../foundation/lib/pause.ts'
import type { EntitySink, SourceState } from '../../../foundation/model/entity.ts'
import type { AccessError, ClusterAccess } from './access.ts'
import { ApiClient, ApiError, metadataOnly } from './api-client.ts'
import { explain, type Fault } from './fault.ts'
import { findAccess, serviceAccountDirectory } from './find-access.ts'
import { Interning } from './interning.ts'
import { OwnerLookup } from './owner-lookup.ts'
import { PodReader } from './pod-reader.ts'
import { PodTable } from './pod-table.ts'
import { type ObjectKeeper, ResourceWatch } from './resource-watch.ts'
import { type ClusterService, ServiceTable } from './service-table.ts'
import { type Timing, usualTiming } from './timing.ts'

const maxAnswerBytes = 1024 * 1024

export interface KubernetesSourceOptions {
  /** Path of a kubeconfig; '' for the account of our own pod. */
  readonly kubeconfig: string
  /** Name of this node; '' to find it. */
  readonly nodeName: string
  /** Namespaces to watch; empty for all. */
  readonly namespaces: readonly string[]
  /** Pod labels to keep, in addition to those with the service name. */
  readonly labels: readonly string[]
  readonly annotations: readonly string[]
  readonly sink: EntitySink
  /** Memory for pods and services; without it there is no limit in bytes. */
  readonly room?: ByteRoom
  readonly warn: (reason: string, hint: string) => void
  readonly environment?: NodeJS.ProcessEnv
  readonly serviceAccountDirectory?: string
  readonly timing?: Partial<Timing>
}

/** State of the source; `connected`: the pods of this node are known and watched. */
export interface KubernetesState extends SourceState {
  /** Whether there is a cluster: svc runs in a pod, or has a kubeconfig. */
  readonly inCluster: boolean
  /** Name of the cluster; '' if unknown. */
  readonly cluster: string
  /** Namespace of svc. */
  readonly namespace: string
  /** Name of this node; '' until it is known. */
  readonly node: string
  readonly podsWatched: number
  readonly servicesWatched: number
}

/** Watches the pods of this node and the services of its cluster, and reports the pods to the sink. */
export class KubernetesSource {
  readonly #options: KubernetesSourceOptions
  readonly #timing: Timing
  readonly #stopping = new AbortController()
  readonly #interning = new Interning()
  readonly #pods: PodTable
  readonly #services: ServiceTable
  readonly #podWatches: ResourceWatch[] = []
  /** Faults by subject. */
  readonly #faults = new KnownFaults<Fault>()
  #access: ClusterAccess | undefined
  #client: ApiClient | undefined
  #node = ''
  #nodeIsGuess = false

  constructor(options: KubernetesSourceOptions) {
    this.#options = options
    // Each request in flight listens to it, and there is a watch per namespace.
    setMaxListeners(0, this.#stopping.signal)
    this.#timing = { ...usualTiming, ...options.timing }
    const { labels, annotations, sink, room = new ByteRoom() } = options
    const reader = new PodReader(labels, annotations, this.#interning)
    this.#pods = new PodTable({ reader, sink, room, ownerMs: this.#timing.ownerMs })
    this.#services = new ServiceTable(this.#interning, room)
  }

  get state(): KubernetesState {
    const connected = this.#podWatches.length > 0 && this.#podWatches.every(watch => watch.connected)
    const { reason = '', hint = '' } = this.#worst ?? (connected ? this.#emptyNode : undefined) ?? {}
    return {
      connected,
      reason,
      hint,
      inCluster: this.#access !== undefined,
      cluster: this.#access?.cluster ?? '',
      namespace: this.#access?.namespace ?? '',
      node: this.#node,
      podsWatched: this.#pods.size,
      servicesWatched: this.#services.size,
    }
  }

  /** Service with this cluster address; in constant time. */
  serviceOf(address: string): ClusterService | undefined {
    return this.#services.at(address)
  }

  /** Starts the watches; results arrive later. */
  start(): void {
    void this.#run()
  }

  /** Stops all requests, and reports all pods as gone. */
  stop(): void {
    this.#stopping.abort()
    this.#client?.close()
    this.#pods.clear()
    this.#services.clear()
  }

  async #run(): Promise<void> {
    const stop = this.#stopping.signal
    const access = await this.#findAccess()
    if (access === undefined || stop.aborted) return
    this.#access = access
    const client = new ApiClient(access, this.#timing.credentialsMs)
    this.#client = client
    this.#node = await this.#findNode(client, access)
    if (stop.aborted) return
    this.#pods.use(this.#ownerLookup(client))
    void this.#findCluster(client, access)
    const namespaces = new Set(this.#options.namespaces)
    for (const namespace of namespaces.size === 0 ? [''] : namespaces) {
      const selector = `fieldSelector=${encodeURIComponent(`spec.nodeName=${this.#node}`)}`
      this.#podWatches.push(this.#watch(client, 'pods', namespace, selector, this.#pods.keeper()))
      this.#watch(client, 'services', namespace, '', this.#services.keeper())
    }
  }

  /** Retries until there is access, or until it is clear that there is no cluster. */
  async #findAccess(): Promise<ClusterAccess | undefined> {
    const stop = this.#stopping.signal
    const { kubeconfig, environment = process.env } = this.#options
    const directory = this.#options.serviceAccountDirectory ?? serviceAccountDirectory
    while (!stop.aborted) {
      try {
        const access = await findAccess({ kubeconfig, environment, serviceAccountDirectory: directory })
        this.#report('access', undefined)
        return access
      } catch (error) {
        const { message, hint } = error as AccessError
        this.#report('access', { reason: message, hint, retryAfterMs: 0, isAnswer: false })
        if (hint === '') return undefined
        await pause(this.#timing.backoff.maxMs, stop)
      }
    }
    return undefined
  }

  #ownerLookup(client: ApiClient): OwnerLookup {
    return new OwnerLookup({
      client,
      interning: this.#interning,
      timing: this.#timing,
      stop: this.#stopping.signal,
      settled: uid => this.#pods.settled(uid),
      report: (resource, fault) => this.#report(`owners ${resource}`, fault),
    })
  }

  #watch(
    client: ApiClient,
    resource: string,
    namespace: string,
    selector: string,
    keeper: ObjectKeeper,
  ): ResourceWatch {
    const watch = new ResourceWatch({
      client,
      path:
        namespace === ''
          ? `/api/v1/${resource}`
          : `/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}`,
      resource,
      namespace,
      selector,
      keeper,
      timing: this.#timing,
      stop: this.#stopping.signal,
      report: fault => this.#report(`${resource} ${namespace}`, fault),
    })
    void watch.run()
    return watch
  }

  /** Node name from the configuration, NODE_NAME or K8S_NODE_NAME, our pod, or the host name as the kubelet does. */
  async #findNode(client: ApiClient, { kubeconfig, namespace }: ClusterAccess): Promise<string> {
    const { nodeName, environment = process.env } = this.#options
    const given = nodeName || environment.NODE_NAME || environment.K8S_NODE_NAME
    if (given) return given
    const name = hostname()
    if (kubeconfig === '' && namespace !== '') {
      // A pod has its name as host name, unless it shares the host name of its node.
      const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(environment.HOSTNAME || name)}`
      const question = { resource: 'pods', namespace, optional: true }
      const pod = await this.#find(client, path, 'application/json', question)
      const found = textOf(objectOf(pod?.spec).nodeName, 253)
      if (found !== '') return found
    }
    this.#nodeIsGuess = true
    return name.trim().toLowerCase()
  }

  /** Semantic conventions, `k8s.cluster.uid`: the uid of the namespace kube-system. */
  async #findCluster(client: ApiClient, { cluster }: ClusterAccess): Promise<void> {
    if (cluster !== '') this.#options.sink.cluster('', cluster)
    const question = { resource: 'namespaces', namespace: '', optional: false }
    const found = await this.#find(client, '/api/v1/namespaces/kube-system', metadataOnly, question)
    const uid = textOf(objectOf(found?.metadata).uid, 128)
    if (uid !== '' && !this.#stopping.signal.aborted) this.#options.sink.cluster(uid, cluster)
  }

  /** One object; undefined if it does not exist, or if it is `optional` and access is denied. */
  async #find(
    client: ApiClient,
    path: string,
    accept: string,
    { resource, namespace, optional }: { resource: string; namespace: string; optional: boolean },
  ): Promise<JsonObject | undefined> {
    const stop = this.#stopping.signal
    const { answerMs, refusedMs } = this.#timing
    const backoff = new Backoff(this.#timing.backoff)
    while (!stop.aborted) {
      try {
        const object = await client.object({ path, accept, timeoutMs: answerMs, stop }, maxAnswerBytes)
        this.#report(`get ${resource}`, undefined)
        return object
      } catch (error) {
        const status = error instanceof ApiError ? error.status : 0
        if (stop.aborted) break
        if (status === 404) {
          this.#report(`get ${resource}`, undefined)
          break
        }
        const fault = explain(error, { place: client.place, verb: 'get', resource, namespace })
        this.#report(`get ${resource}`, fault)
        if (status === 403 && optional) break
        await pause(status === 403 ? refusedMs : Math.max(backoff.next(), fault.retryAfterMs), stop)
      }
    }
    return undefined
  }

  /** Most important fault: those of access and pods come first. */
  get #worst(): Fault | undefined {
    const rank = (subject: string) => (/^(access|pods|get pods)\b/.test(subject) ? 0 : 1)
    return [...this.#faults].sort(([one], [other]) => rank(one) - rank(other))[0]?.[1]
  }

  /** Fault of a guessed node name without pods. */
  get #emptyNode(): Pick<Fault, 'reason' | 'hint'> | undefined {
    if (!this.#nodeIsGuess || this.#pods.size > 0 || this.#options.namespaces.length > 0) return undefined
    return {
      reason: `no pod in the cluster runs on a node called "${this.#node}"`,
      hint: 'set agent.discovery.kubernetes.node_name, or NODE_NAME from spec.nodeName by the downward API',
    }
  }

  /** Sets the fault of a subject; undefined clears it. */
  #report(subject: string, fault: Fault | undefined): void {
    if (!this.#faults.set(subject, fault)) return
    // Without a hint there is no fault.
    if (fault.hint !== '' && !this.#stopping.signal.aborted) this.#options.warn(fault.reason, fault.hint)
  }
}
