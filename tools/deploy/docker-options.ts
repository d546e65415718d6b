// The options of a container of svc: those that its needs require, and no others.

import { defaults, variableOf } from '../../src/config/index.ts'
import { capabilityHints } from '../../src/kernel/need.ts'
import { endMs } from '../../src/program/cli/run-agent.ts'
import { table } from '../../src/program/doctor/table.ts'

/** An option of `docker run` with its value. */
type Option = readonly [name: string, value: string]

/** Needs with the fault that a container has by default. */
const fixed: readonly (readonly [need: string, fault: string])[] = [
  ['host pid namespace', 'own'],
  ['metrics address', 'foreign'],
  ['eBPF programs', 'security_module'],
  ['admin socket', 'read_only'],
  ['log positions', 'refused'],
  ['system call tracepoints', 'absent'],
  ['container logs', 'denied'],
  ['log files', 'none'],
  ['capture programs', 'no_memory'],
]

/** Options in addition to those of the needs. */
const own: readonly Option[] = [
  ['read-only', ''],
  ['cap-drop', 'ALL'],
  ['security-opt', 'no-new-privileges'],
  ['cgroupns', 'host'],
  ['stop-timeout', `${Math.ceil(endMs(defaults().pipeline.operations.shutdown.timeout) / 1000)}`],
  // File systems mounted later are visible too.
  ['volume', '/:/host:ro,rslave'],
  ['env', `${variableOf('agent.nodeexporter.path.rootfs')}=/host`],
  // Users of the host, and its network, could otherwise reach it.
  ['env', `${variableOf('self_telemetry.listen')}=127.0.0.1:19090`],
]

const order =
  'restart stop-timeout memory read-only tmpfs pid network cgroupns cap-drop cap-add security-opt volume env'.split(
    ' ',
  )

/** All options, in reading order. */
export function options(): Option[] {
  const capabilities = [...new Set(table.flatMap(row => row.capabilities ?? []))]
  const lines = [capabilityHints(...capabilities).container, ...fixed.map(hintOf)]
  const all: readonly Option[] = [['restart', 'unless-stopped'], ...own, ...lines.flatMap(optionsOf)]
  return [...new Map(all.map(each => [each.join(), each])).values()]
    .filter(([name]) => name !== 'user') // set by the image
    .sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))
}

function hintOf([need, fault]: readonly [string, string]): string {
  const line = table.find(({ name }) => name === need)?.faults[fault]?.hints.container
  if (line === undefined) throw new Error(`${need}: ${fault} no longer has a hint for containers`)
  return line
}

/** Options of a line `docker run --NAME=VALUE -v VALUE …`. */
function optionsOf(line: string): Option[] {
  const words = line.replace(/^docker run /, '')
  const pattern = /(?:--([a-z-]+)[= ]|-(v) )(\S+)(?: |$)/y
  const found: Option[] = []
  while (pattern.lastIndex < words.length) {
    const match = pattern.exec(words)
    if (match === null) throw new Error(`cannot read the options of "${line}"`)
    found.push([match[1] ?? 'volume', match[3]!])
  }
  return found
}
