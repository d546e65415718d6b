import { isIPv6, SocketAddress } from 'node:net'
import { decimal, Scanner } from '../../../foundation/lib/scanner.ts'
import { text } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { bytesOrNoData } from './_missing-file.ts'
import { collector, counter, gauge } from './collector.ts'

/** Numbers of the table of totals, in its order. */
const totals = [
  counter('ipvs_connections_total', 'Connections that IPVS has passed on.'),
  counter('ipvs_incoming_packets_total', 'Packets that came in for services of IPVS.'),
  counter('ipvs_outgoing_packets_total', 'Packets that went out from services of IPVS.'),
  counter('ipvs_incoming_bytes_total', 'Bytes that came in for services of IPVS.'),
  counter('ipvs_outgoing_bytes_total', 'Bytes that went out from services of IPVS.'),
]

/** Labels in rising order. */
const backendLabels = [
  'local_address',
  'local_mark',
  'local_port',
  'proto',
  'remote_address',
  'remote_port',
] as const
type BackendLabel = (typeof backendLabels)[number]

function backendFamilies(labels: readonly string[]) {
  return {
    active: gauge('ipvs_backend_connections_active', 'Connections to a real server that are open.', {
      labels,
    }),
    inactive: gauge('ipvs_backend_connections_inactive', 'Connections to a real server that are ending.', {
      labels,
    }),
    weight: gauge('ipvs_backend_weight', 'Share of a real server in new connections.', { labels }),
  }
}

const usual = backendFamilies(backendLabels)

/** Services of the IP virtual server, from /proc/net/{ip_vs,ip_vs_stats} (ipvsadm(8)). */
export const ipvs = collector({
  name: 'ipvs',
  summary: 'Services of the IP virtual server',
  source: '/proc/net/ip_vs',
  enabledByDefault: true,
  metrics: [...totals, ...Object.values(usual)],
  options: {
    backend_labels: key(
      text(),
      'local_address,local_port,remote_address,remote_port,proto,local_mark',
      'Labels of backend metrics, between commas; real servers that do not differ in them are added up.',
    ),
  },
  start: (options, { host }) => {
    const labels = labelsOf(options.backend_labels)
    const families = labels.length === backendLabels.length ? usual : backendFamilies(labels)
    return {
      collect(readings) {
        const sums = parseTotals(bytesOrNoData(host.proc, 'net/ip_vs_stats', 'the kernel has no IPVS'))
        totals.forEach((family, i) => {
          readings.set(family, sums[i]!)
        })
        for (const { labels: values, active, inactive, weight } of backends(
          host.proc.bytes('net/ip_vs'),
          labels,
        )) {
          readings.setAll(families.active, active, values)
          readings.setAll(families.inactive, inactive, values)
          readings.setAll(families.weight, weight, values)
        }
      },
    }
  },
})

function labelsOf(option: string): readonly BackendLabel[] {
  const asked = new Set(option.split(',').filter(label => label !== ''))
  const labels = backendLabels.filter(label => asked.delete(label))
  if (asked.size > 0)
    throw new Error(
      `cannot label backends of ipvs with ${[...asked].join(', ')}: known labels are ${backendLabels.join(', ')}`,
    )
  return labels
}

function parseTotals(bytes: Buffer): readonly number[] {
  const scan = new Scanner(bytes)
  const hasHead = scan.line() && scan.line() && scan.line()
  const sums = totals.map(() => scan.hex())
  if (!hasHead || sums.some(Number.isNaN) || !scan.done)
    throw new Error(
      'cannot read /proc/net/ip_vs_stats: the third line does not have five hexadecimal numbers',
    )
  return sums
}

interface Backend {
  readonly labels: readonly string[]
  active: number
  inactive: number
  weight: number
}

/** Real servers of all services; those with equal labels are summed. */
function backends(bytes: Buffer, labels: readonly BackendLabel[]): Iterable<Backend> {
  const scan = new Scanner(bytes)
  const found = new Map<string, Backend>()
  const service = { local_address: '', local_mark: '', local_port: '0', proto: '' }
  if (!scan.line() || !scan.starts('IP Virtual Server'))
    throw new Error('cannot read /proc/net/ip_vs: it does not start with "IP Virtual Server"')
  while (scan.line()) {
    const [first = '', second = '', , weight = '', active = '', inactive = ''] = scan.rest().split(/[ \t]+/)
    if (first === 'TCP' || first === 'UDP' || first === 'SCTP') {
      const [address, port] = parseAddress(second)
      Object.assign(service, { local_address: address, local_mark: '', local_port: port, proto: first })
    } else if (first === 'FWM') {
      Object.assign(service, { local_address: '', local_mark: second, local_port: '0', proto: first })
    } else if (first === '->' && second !== 'RemoteAddress:Port') {
      const [remote_address, remote_port] = parseAddress(second)
      const all = { ...service, remote_address, remote_port }
      const values = labels.map(label => all[label])
      const counts = [active, inactive, weight].map(decimal)
      if (counts.some(Number.isNaN))
        throw new Error('cannot read /proc/net/ip_vs: a real server has no numbers')
      const name = values.join(' ')
      const backend = found.get(name) ?? { labels: values, active: 0, inactive: 0, weight: 0 }
      found.set(name, backend)
      backend.active += counts[0]!
      backend.inactive += counts[1]!
      backend.weight += counts[2]!
    }
  }
  return found.values()
}

/** `C0A80016:0CEA`, or `[2620:0000:…:0000]:0CEA` with all eight groups. */
function parseAddress(word: string): readonly [address: string, port: string] {
  const four = /^([0-9A-Fa-f]{8}):([0-9A-Fa-f]{4})$/.exec(word)
  if (four) {
    const bytes = Buffer.from(four[1]!, 'hex')
    return [bytes.join('.'), String(Number.parseInt(four[2]!, 16))]
  }
  const six = /^\[([0-9A-Fa-f:]{39})\]:([0-9A-Fa-f]{4})$/.exec(word)
  if (six && isIPv6(six[1]!))
    return [
      new SocketAddress({ address: six[1]!, family: 'ipv6' }).address,
      String(Number.parseInt(six[2]!, 16)),
    ]
  throw new Error('cannot read /proc/net/ip_vs: a line has no address and port')
}
