// Facts of the program for the chart's templates.
import { dirname } from 'node:path'
import type { probePaths } from '../../src/config/api-paths.ts'
import { defaults, schema } from '../../src/config/index.ts'
import { type Keys, leaves } from '../../src/foundation/schema/tree.ts'
import type { Capability } from '../../src/kernel/capabilities.ts'
import type { Topic } from '../../src/kernel/need.ts'
import { containerLogDirectories } from '../../src/program/agent/log-sources.ts'
import { configFlag } from '../../src/program/cli/arguments.ts'
import { commands } from '../../src/program/cli/index.ts'
import { table } from '../../src/program/doctor/table.ts'
import type { Collector } from '../../src/signals/metrics/collectors/collector.ts'
import { collectors } from '../../src/signals/metrics/collectors/index.ts'
import { rightsOfRoles } from './kubernetes-rights.ts'

/** Mount point of the host's root in the agent's container. */
const hostMount = '/host'
const configDirectory = '/etc/svc'

/** Topics of the table of needs by feature, named by the key that enables it. The first row is always enabled. */
const topics: Readonly<Record<string, readonly Topic[]>> = {
  '': ['processes'],
  'agent.ebpf': ['traces'],
  // Profiles use eBPF programs of their own.
  'agent.profiling': ['traces', 'profiles'],
}

/** Collectors that read the network of their own process: in a pod with its own network they would report the pod's. */
const ofOwnNetwork = /\/proc\/net\/|netlink|sock_diag|ethtool\(8\)|nl80211/
/** Collectors whose file covers all networks: /proc/net/softnet_stat counts by CPU. */
const ofAllNetworks = new Set(['softnet'])

/** JSON for the template `svc.facts`. */
export function chartFacts() {
  const config = defaults()
  const { self_telemetry: api, agent, pipeline } = config
  return {
    run: command('run'),
    doctor: command('doctor'),
    capabilities: capabilities(),
    listen: { management: api.listen, metrics: agent.nodeexporter.listen_address },
    live: probe('/livez'),
    healthy: probe('/healthz'),
    metricsPath: api.path,
    hostMount,
    configDirectory,
    configFile: configFile(),
    stateDirectory: stateDirectory(pipeline.export.queue.directory, agent.logs.position_file),
    runDirectory: dirname(api.admin_socket),
    logDirectories: containerLogDirectories,
    agentConfig: agentConfig(config),
    ownNetworkConfig: ownNetworkConfig(),
    restartKeys: [...leaves(schema)].filter(([, key]) => key.restart).map(([path]) => path),
    roles: rightsOfRoles(),
  }
}

function command(name: string): string {
  if (!commands.some(each => each.name === name)) throw new Error(`the program has no command "${name}"`)
  return name
}

function probe(path: (typeof probePaths)[number]): string {
  return path
}

function configFile(): string {
  const file = `${configDirectory}/config.yaml`
  if (!configFlag.summary.includes(file)) throw new Error(`the program does not look for ${file}`)
  return file
}

/** The common directory of both. */
function stateDirectory(queue: string, positions: string): string {
  if (dirname(queue) !== dirname(positions)) throw new Error('the state stands in two directories')
  return dirname(queue)
}

function capabilities(): Readonly<Record<string, readonly Capability[]>> {
  const known = new Set(Object.values(topics).flat())
  for (const { name, group, capabilities } of table)
    if (capabilities !== undefined && !known.has(group))
      throw new Error(`"${name}" takes capabilities: say in kubernetes-facts.ts which feature it is of`)
  const of = (groups: readonly Topic[]) =>
    table.filter(({ group }) => groups.includes(group)).flatMap(row => row.capabilities ?? [])
  return Object.fromEntries(Object.entries(topics).map(([key, groups]) => [key, [...new Set(of(groups))]]))
}

/** The host's paths and name for an agent in a pod; its own would be those of the pod. */
function agentConfig({ agent }: ReturnType<typeof defaults>) {
  const onHost = (path: string) => (path === '/' ? hostMount : `${hostMount}${path}`)
  const { nodeexporter, profiling } = agent
  const path = Object.fromEntries(
    Object.entries(nodeexporter.path).map(([name, value]) => [name, onHost(value)]),
  )
  const { textfile } = nodeexporter as unknown as { textfile: { directory: readonly string[] } }
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own syntax
  const node = '${NODE_NAME}'
  return {
    resource: { attributes: { 'host.name': node, 'k8s.node.name': node } },
    agent: {
      nodeexporter: { path, textfile: { directory: textfile.directory.map(onHost) } },
      profiling: { symbols: { debuginfo_dirs: profiling.symbols.debuginfo_dirs.map(onHost) } },
    },
  }
}

function ownNetworkConfig() {
  const units: readonly Collector<Keys>[] = collectors
  const names = units
    .filter(({ enabledByDefault }) => enabledByDefault)
    .filter(({ name, source = '' }) => ofOwnNetwork.test(source) && !ofAllNetworks.has(name))
    .map(({ name }) => name)
  return { agent: { nodeexporter: { collectors: Object.fromEntries(names.map(name => [name, false])) } } }
}
