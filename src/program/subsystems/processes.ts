import { hostname } from 'node:os'
import { build } from '../../foundation/lib/build.ts'
import { change } from '../../foundation/lib/change.ts'
import { textOfFile } from '../../foundation/lib/optional-files.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import { ContainerResources } from '../../identity/entities/container-resources.ts'
import { ProcessTable, type ProcessTableOptions } from '../../identity/entities/process-table.ts'
import { discoveryDocument as discoverySchema } from '../../view/api/discovery-schemas.ts'
import type { Discovery } from '../agent/discovery.ts'
import { discoveryDocument } from '../agent/discovery-view.ts'
import { nested, values } from '../agent/self-metrics.ts'
import type { Subsystem } from '../agent/subsystem.ts'
import { selectionOf } from '../agent/tracing.ts'
import { discovery } from './discovery.ts'
import { memory } from './memory.ts'

/** Identities of processes. */
export interface Processes {
  readonly discovery: Discovery
  readonly processes: ProcessTable
  /** Processes of profiles, which may be excluded from tracing. */
  readonly profiled: ProcessTable
  readonly resources: ContainerResources
}

export const processes: Subsystem<Processes> = {
  name: 'processes',
  keys: ['discovery'],
  create: agent => {
    const { config } = agent
    const found = agent.of(discovery)
    const { entities, host } = found
    const options: ProcessTableOptions = {
      hostName: hostname(),
      hostId: String(host.resource.attributes.get('host.id') ?? ''),
      // Without /proc, instance IDs are only unique within one boot.
      bootId: textOfFile('/proc/sys/kernel/random/boot_id').trim(),
      version: build().version,
      attributes: Attributes.of(config.resource.attributes),
      surroundings: place => entities.surroundings(place),
      allowedKeys: config.agent.discovery.process_attributes,
    }
    const table = new ProcessTable(options)
    const profiled = new ProcessTable({ ...options, maxProcesses: 1024 })
    for (const each of [table, profiled]) each.select(selectionOf(config.discovery))
    const resources = new ContainerResources({ entities, processes: table, host: () => host.resource })
    const { governor } = agent.of(memory)
    for (const [name, kept] of Object.entries({
      processes: table,
      'processes in profiles': profiled,
      'containers and pods': entities,
      'resources of containers': resources,
    }))
      governor.register({ name, kind: 'detail', bytes: () => kept.bytes, shed: bytes => kept.shed(bytes) })
    return { discovery: found, processes: table, profiled, resources }
  },
  prepare: (own, config) => {
    const rules = selectionOf(config.discovery)
    return change(() => {
      for (const each of [own.processes, own.profiled]) each.select(rules)
    })
  },
  pages: [
    {
      path: '/status/discovery',
      id: 'getDiscovery',
      summary: 'Discovered metadata. Scans all processes, at most once per second.',
      schema: discoverySchema,
      costly: true,
      read: own => discoveryDocument(own.discovery, own.processes),
    },
  ],
  metrics: {
    process_attributes_dropped_total: values(
      'reason',
      'Attributes from OTEL_RESOURCE_ATTRIBUTES of processes, and from annotations resource.opentelemetry.io/ of pods, that were ignored or cut: not_allowed (neither service.* nor deployment.*, nor in agent.discovery.process_attributes); too_many; too_long; memory.',
      lostAttributes,
    ),
    process_memory_unread_total: {
      help: 'Failed reads of process memory, by reader: strings (command lines and environments; such processes are named after their programs), tls (libraries are found later), profiles (functions of V8 and CPython have no names). Reasons: late (no answer in time, for example because a hanging file system holds the lock of that memory); refused (other reads for the same user or container are waiting); busy (answers took so long that svc waits for no more of them now); unavailable (svc-probe is not running).',
      labels: ['reader', 'reason'],
      ...nested<Processes>(own => ({ strings: own.processes.unreadStrings })),
    },
    share_losses_total: {
      help: 'Times that a user or container at its share of a table was refused more (refused), or lost some to another one (taken).',
      labels: ['table', 'reason'],
      ...nested<Processes>(own => ({ processes: own.processes.losses })),
    },
  },
}

/** Dropped attributes of processes, and of annotations of their pods. */
function lostAttributes({ processes: table, discovery: { entities } }: Processes) {
  const own = table.lostAttributes
  const { not_allowed, too_many, too_long } = entities.lost
  return {
    ...own,
    not_allowed: own.not_allowed + not_allowed,
    too_many: own.too_many + too_many,
    too_long: own.too_long + too_long,
  }
}
