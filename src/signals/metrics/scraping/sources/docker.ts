import { parseDockerAddress, shownDockerAddress } from '../../../../foundation/lib/docker-address.ts'
import { hostPort } from '../../../../foundation/lib/host-port.ts'
import {
  isObject,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
} from '../../../../foundation/lib/json-fields.ts'
import { EngineClient, EngineError } from '../../../../identity/discovery/docker/engine-client.ts'
import { enginePlace } from '../../../../identity/discovery/docker/engine-places.ts'
import { identifyEngine } from '../../../../identity/discovery/docker/engine-session.ts'
import type { TargetGroup } from '../scrape-job.ts'
import type { SettingsOf, SourceKind, SourceOptions, TargetSource, TargetSourceState } from '../source.ts'
import { jsonElements } from './_json-list.ts'
import { labelPart } from './_labels.ts'
import { refresh } from './_refresh.ts'
import { TargetGroupPublisher } from './_target-group-publisher.ts'

const listMs = 30_000
const maxListBytes = 16 * 1024 * 1024
const maxEntries = 1_000
const maxValue = 4_096
/** Maximum chain of containers that share the network of another one; Docker itself makes no cycles. */
const maxHops = 8
const prefix = '__meta_docker_'

type Labels = Map<string, string>

/**
 * Targets from running containers of a Docker daemon (`docker_sd_configs`): one per TCP port, or one with the
 * configured port. Of several networks the first by name counts (`match_first_network`).
 */
class DockerTargets implements TargetSource {
  readonly #settings: SettingsOf<'docker'>
  readonly #publisher: TargetGroupPublisher
  readonly #stopping = new AbortController()
  #client: EngineClient | undefined

  constructor(settings: SettingsOf<'docker'>, options: SourceOptions) {
    this.#settings = settings
    this.#publisher = new TargetGroupPublisher('docker', options)
  }

  get state(): TargetSourceState {
    return this.#publisher.state
  }

  start(): void {
    const { host } = this.#settings
    const address = parseDockerAddress(host)
    if ('instead' in address) {
      this.#publisher.report('', {
        reason: `cannot query the Docker daemon at "${shownDockerAddress(host)}": ${address.reason}`,
        hint: `set host of docker_sd to ${address.instead}`,
      })
      return
    }
    // The environment's settings for Docker clients are for this host's daemon.
    const client = new EngineClient(enginePlace(address, {}))
    this.#client = client
    const ask = () => this.#ask(client)
    const failed = (error: unknown) =>
      this.#publisher.report('', {
        reason: `cannot query the Docker daemon at ${host}: ${(error as Error).message}`,
        hint: hintOf(error, host),
      })
    void refresh(this.#settings.refreshMs, this.#stopping.signal, ask, failed)
  }

  stop(): void {
    this.#stopping.abort()
    this.#client?.close()
    this.#publisher.close()
  }

  async #ask(client: EngineClient): Promise<void> {
    const { prefix: version } = await identifyEngine(client)
    const list = async (path: string) => {
      const bytes = await client.ask({ path: `${version}${path}`, maxBytes: maxListBytes, timeoutMs: listMs })
      const objects: JsonObject[] = []
      for await (const each of jsonElements(bytes)) if (isObject(each)) objects.push(each)
      return objects
    }
    const networks = new Map<string, Labels>()
    for (const network of await list('/networks')) networks.set(textOf(network.Id), networkLabels(network))
    const containers = new Map<string, JsonObject>()
    for (const container of await list('/containers/json')) containers.set(textOf(container.Id), container)
    if (this.#stopping.signal.aborted) return
    const ids = new Set<string>()
    for (const [id, container] of containers) {
      const group = groupOf(id, container, containers, networks, this.#settings)
      if (group === undefined) continue
      ids.add(id)
      this.#publisher.put(id, [group])
    }
    this.#publisher.keepOnly(ids)
    this.#publisher.report('', undefined)
    this.#publisher.known()
  }
}

/** Source kind for `docker_sd_configs`. */
export const dockerSource: SourceKind<'docker'> = {
  kind: 'docker',
  open: (settings, options) => new DockerTargets(settings, options),
}

function hintOf(error: unknown, host: string): string {
  const { code = '', status = 0 } = error instanceof EngineError ? error : {}
  if (code === 'EACCES') return `give svc read and write access to ${host}, for example by the group docker`
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return 'start Docker, or correct host of docker_sd'
  if (status > 0) return 'check the log of the daemon'
  return 'check that host of docker_sd is the address of a running Docker daemon'
}

/** Undefined without a name or an address. */
function groupOf(
  id: string,
  container: JsonObject,
  containers: ReadonlyMap<string, JsonObject>,
  networkLabels: ReadonlyMap<string, Labels>,
  settings: SettingsOf<'docker'>,
): TargetGroup | undefined {
  const name = textOf(listOf(container.Names)[0])
  if (id === '' || name === '') return undefined
  const mode = textOf(objectOf(container.HostConfig).NetworkMode)
  const labels: Labels = new Map()
  set(labels, 'container_id', id)
  set(labels, 'container_name', name)
  set(labels, 'container_network_mode', mode)
  addLabels(labels, 'container_label', container.Labels)
  const network = networkOf(container, containers)
  if (network === undefined) return undefined
  const ip = textOf(network.IPAddress, 45)
  // Unreachable without a network; Prometheus would scrape its own host.
  if (ip === '' && mode !== 'host') return undefined
  const common = networkLabels.get(textOf(network.NetworkID)) ?? new Map<string, string>()
  const target = (address: string, own: Readonly<Record<string, string>> = {}) => {
    const made: Labels = new Map(common)
    made.set('__address__', address)
    set(made, 'network_ip', ip)
    for (const [label, value] of Object.entries(own)) set(made, label, value)
    return made
  }
  const targets = listOf(container.Ports, maxEntries)
    .filter(isObject)
    .filter(port => port.Type === 'tcp' && typeof port.PrivatePort === 'number')
    .map(({ PrivatePort, PublicPort, IP }) =>
      target(hostPort(ip, Number(PrivatePort)), {
        port_private: String(PrivatePort),
        ...(typeof PublicPort === 'number' &&
          PublicPort > 0 && { port_public: String(PublicPort), port_public_ip: textOf(IP, 45) }),
      }),
    )
  if (targets.length === 0)
    targets.push(target(mode === 'host' ? settings.hostNetworkingHost : hostPort(ip, settings.port)))
  return { source: `docker/${id}`, targets, labels }
}

/** First network by name, of the container or of the one whose network it shares. */
function networkOf(
  container: JsonObject,
  containers: ReadonlyMap<string, JsonObject>,
): JsonObject | undefined {
  let current: JsonObject | undefined = container
  for (let hop = 0; hop < maxHops && current !== undefined; hop++) {
    const networks = objectOf(objectOf(current.NetworkSettings).Networks)
    const names = Object.keys(networks).filter(name => isObject(networks[name]))
    const first = names.sort()[0]
    if (first !== undefined) return objectOf(networks[first])
    const mode = textOf(objectOf(current.HostConfig).NetworkMode)
    current = mode.startsWith('container:') ? containers.get(mode.slice('container:'.length)) : undefined
  }
  return undefined
}

function networkLabels(network: JsonObject): Labels {
  const labels: Labels = new Map()
  set(labels, 'network_id', textOf(network.Id))
  set(labels, 'network_name', textOf(network.Name))
  set(labels, 'network_scope', textOf(network.Scope))
  set(labels, 'network_internal', String(network.Internal === true))
  set(labels, 'network_ingress', String(network.Ingress === true))
  addLabels(labels, 'network_label', network.Labels)
  return labels
}

function addLabels(labels: Labels, kind: string, entries: unknown): void {
  for (const [name, value] of Object.entries(objectOf(entries)).slice(0, maxEntries))
    set(labels, `${kind}_${labelPart(name)}`, textOf(value, maxValue))
}

/** Empty labels are omitted. */
function set(labels: Labels, name: string, value: string): void {
  if (value !== '') labels.set(`${prefix}${name}`, value)
}
