import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { Scanner } from '../../../foundation/lib/scanner.ts'
import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { bytesIfPresent } from './_missing-file.ts'
import { NumberLines } from './_number-lines.ts'
import { collector, type Family, type Host, type Readings, untyped } from './collector.ts'
import { families, metricName } from './families.ts'

type FamilyOf = (name: string) => Family | undefined

/** Maximum cached header lines: a kernel has some ten, which change only with the kernel. */
const mostHeaders = 64

/** Counters of network protocols, from /proc/net/{netstat,snmp,snmp6} (proc(5), RFC 4293, 4022, 4113). */
export const netstat = collector({
  name: 'netstat',
  summary: 'Counters of network protocols',
  source: '/proc/net/netstat, snmp, snmp6',
  enabledByDefault: true,
  metrics: [],
  dynamic:
    'One metric for each field of /proc/net/netstat, snmp and snmp6 that `fields` matches as `Protocol_Field`.',
  options: {
    fields: key(
      regex,
      '^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|Icmp6?_(InMsgs|OutMsgs)|TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts|TCPOFOQueue|TCPRcvQDrop)|Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$',
      'Regular expression for fields to show, as `Protocol_Field`.',
    ),
  },
  start: ({ fields }, { host }) => {
    const wanted = linearRegExp(fields)
    const known = families(name =>
      wanted.test(name)
        ? untyped(`netstat_${metricName(name)}`, `${name} of the kernel's network counters.`)
        : undefined,
    )
    // In snmp6, protocol and field are one word; the split names are cached.
    const known6 = families(name => {
      const six = name.indexOf('6') + 1
      return six === 0 ? undefined : known(`${name.slice(0, six)}_${name.slice(six)}`)
    })
    const lines6 = new NumberLines('/proc/net/snmp6', known6)
    const tables = new Tables(known)
    return {
      collect(readings) {
        tables.read('net/netstat', host, readings)
        tables.read('net/snmp', host, readings)
        // A kernel without IPv6 has no such file.
        const bytes = bytesIfPresent(host.proc, 'net/snmp6')
        if (bytes !== undefined) lines6.show(bytes, readings)
      },
    }
  },
})

/** Reads files with alternating lines of names and values, both with the protocol in front. */
class Tables {
  readonly #known: FamilyOf
  readonly #scan = new Scanner(Buffer.alloc(0))
  readonly #columns = new Map<string, readonly (Family | undefined)[]>()

  constructor(known: FamilyOf) {
    this.#known = known
  }

  read(path: string, host: Host, readings: Readings): void {
    const scan = this.#scan.reset(host.proc.bytes(path))
    let lines = 0
    while (scan.line()) {
      const columns = this.#columnsOf(scan.rest(), path)
      lines += 2
      const broken = () =>
        new Error(`cannot read /proc/${path}: line ${lines} does not have the fields of the line before it`)
      if (!scan.line()) throw broken()
      scan.skip()
      for (const family of columns) {
        if (scan.done) throw broken()
        if (family === undefined) {
          scan.skip()
          continue
        }
        const value = scan.number()
        if (Number.isNaN(value)) throw broken()
        readings.set(family, value)
      }
      if (!scan.done) throw broken()
    }
    if (lines === 0) throw new Error(`cannot read /proc/${path}: empty file`)
  }

  /** Families of the values below a header. Headers are the same at each scrape. */
  #columnsOf(header: string, path: string): readonly (Family | undefined)[] {
    const before = this.#columns.get(header)
    if (before !== undefined) return before
    const [protocol = '', ...names] = header.split(/[ \t]+/)
    if (!protocol.endsWith(':')) throw new Error(`cannot read /proc/${path}: a line has no protocol`)
    const columns = names.map(name => this.#known(`${protocol.slice(0, -1)}_${name}`))
    if (this.#columns.size >= mostHeaders) this.#columns.clear()
    this.#columns.set(header, columns)
    return columns
  }
}
