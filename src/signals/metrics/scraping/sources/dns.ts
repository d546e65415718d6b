import { Resolver } from 'node:dns/promises'
import { hostPort } from '../../../../foundation/lib/host-port.ts'
import { readSmallFile } from '../../../../foundation/lib/small-file.ts'
import type { TargetGroup } from '../scrape-job.ts'
import type { SettingsOf, SourceKind, SourceOptions, TargetSource, TargetSourceState } from '../source.ts'
import { refresh } from './_refresh.ts'
import { TargetGroupPublisher } from './_target-group-publisher.ts'

type RecordType = SettingsOf<'dns'>['type']

const maxFileBytes = 64 * 1024
/** For one attempt with one server. */
const timeoutMs = 5_000
const tries = 2
const resolverFile = '/etc/resolv.conf'
/** resolv.conf(5). */
const maxSearch = 32
const maxRecords = 10_000
/** Valid results: the name does not exist, or has no such records. */
const nothing: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA'])

interface Found {
  readonly host: string
  readonly port: number
  /** Meta labels besides the name. */
  readonly labels: Readonly<Record<string, string>>
}

/** Queries by record type; `port` is used for types without a port. */
const lookUp: Readonly<
  Record<RecordType, (resolver: Resolver, name: string, port: number) => Promise<readonly Found[]>>
> = {
  SRV: async (resolver, name) =>
    (await resolver.resolveSrv(name)).map(record => ({
      host: record.name,
      port: record.port,
      labels: { srv_record_target: `${record.name}.`, srv_record_port: String(record.port) },
    })),
  A: async (resolver, name, port) =>
    (await resolver.resolve4(name)).map(host => ({ host, port, labels: {} })),
  AAAA: async (resolver, name, port) =>
    (await resolver.resolve6(name)).map(host => ({ host, port, labels: {} })),
  MX: async (resolver, name, port) =>
    (await resolver.resolveMx(name)).map(({ exchange: host }) => ({
      host,
      port,
      labels: { mx_record_target: `${host}.` },
    })),
  NS: async (resolver, name, port) =>
    (await resolver.resolveNs(name)).map(host => ({ host, port, labels: { ns_record_target: `${host}.` } })),
}

export interface DnsTargetsOptions extends SourceOptions {
  /** `address:port` of each server; if omitted, those of the host. */
  readonly servers?: readonly string[]
  readonly resolverFile?: string
}

/**
 * Targets from DNS records (`dns_sd_configs`), with the search list of the host. A name without records has no targets;
 * if servers give no usable answer, the last records are kept (as in Prometheus, `lookupWithSearchPath`).
 */
export class DnsTargets implements TargetSource {
  readonly #settings: SettingsOf<'dns'>
  readonly #options: DnsTargetsOptions
  readonly #publisher: TargetGroupPublisher
  readonly #stopping = new AbortController()
  #resolver: Resolver | undefined

  constructor(settings: SettingsOf<'dns'>, options: DnsTargetsOptions) {
    this.#settings = settings
    this.#options = options
    this.#publisher = new TargetGroupPublisher('dns', options)
  }

  get state(): TargetSourceState {
    return this.#publisher.state
  }

  start(): void {
    const ask = () => this.#ask()
    void refresh(this.#settings.refreshMs, this.#stopping.signal, ask, () => undefined)
  }

  stop(): void {
    this.#stopping.abort()
    this.#resolver?.cancel()
    this.#publisher.close()
  }

  /** Rejects if a query failed. */
  async #ask(): Promise<void> {
    const { servers, resolverFile: file = resolverFile } = this.#options
    // A new resolver each time: the servers of the host may have changed.
    const resolver = new Resolver({ timeout: timeoutMs, tries })
    if (servers !== undefined) resolver.setServers(servers)
    this.#resolver = resolver
    const search = parseSearch((await readSmallFile(file, maxFileBytes).catch(() => '')).toString('latin1'))
    const names = [...new Set(this.#settings.names)]
    const isFailed = await Promise.all(names.map(name => this.#askFor(name, resolver, search)))
    if (this.#stopping.signal.aborted) return
    if (isFailed.every(each => !each)) this.#publisher.known()
    else throw new Error('some lookups failed')
  }

  /** Returns whether it failed. */
  async #askFor(name: string, resolver: Resolver, search: Search): Promise<boolean> {
    const { type, port } = this.#settings
    let fault: NodeJS.ErrnoException | undefined
    for (const whole of namesOf(name, search)) {
      try {
        const found = await lookUp[type](resolver, whole, port)
        this.#tell(name, found)
        return false
      } catch (error) {
        if (this.#stopping.signal.aborted) return true
        // The name exists without such records, so no other name is tried.
        if ((error as NodeJS.ErrnoException).code === 'ENODATA') break
        if (!nothing.has((error as NodeJS.ErrnoException).code)) fault = error as NodeJS.ErrnoException
      }
    }
    if (fault === undefined) {
      this.#tell(name, [])
      return false
    }
    this.#publisher.report(name, {
      reason: `cannot look up the ${type} records of ${name}: ${causeOf(fault, resolver)}`,
      hint: `check that the servers in ${resolverFile} answer, and that the name in dns_sd is correct`,
    })
    return true
  }

  #tell(name: string, found: readonly Found[]): void {
    if (this.#stopping.signal.aborted) return
    this.#publisher.report(name, undefined)
    const targets = found
      .slice(0, maxRecords)
      .map(({ host, port, labels }) => {
        const target = new Map([
          ['__address__', hostPort(host, port)],
          ['__meta_dns_name', name],
        ])
        for (const [label, value] of Object.entries(labels)) target.set(`__meta_dns_${label}`, value)
        return target
      })
      // Servers rotate the records.
      .sort((one, other) => (one.get('__address__')! < other.get('__address__')! ? -1 : 1))
    const group: TargetGroup = { source: name, targets, labels: new Map() }
    this.#publisher.put(name, [group])
  }
}

/** Source kind for `dns_sd_configs`. */
export const dnsSource: SourceKind<'dns'> = {
  kind: 'dns',
  open: (settings, options) => new DnsTargets(settings, options),
}

/** resolv.conf(5). */
interface Search {
  readonly domains: readonly string[]
  readonly dots: number
}

function parseSearch(text: string): Search {
  let domains: readonly string[] = []
  let dots = 1
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line.trim().split(/\s+/)
    if (keyword === 'search' || keyword === 'domain') domains = words.slice(0, maxSearch)
    const given = keyword === 'options' ? words.find(word => /^ndots:\d{1,2}$/.test(word)) : undefined
    if (given !== undefined) dots = Number(given.slice('ndots:'.length))
  }
  return { domains: domains.map(each => each.replace(/\.$/, '')).filter(each => each !== ''), dots }
}

/** Full names to try for a name, in order. */
function namesOf(name: string, { domains, dots }: Search): readonly string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)]
  const longer = domains.map(domain => `${name}.${domain}`)
  return name.split('.').length - 1 >= dots ? [name, ...longer] : [...longer, name]
}

function causeOf({ code, message }: NodeJS.ErrnoException, resolver: Resolver): string {
  const servers = resolver.getServers().slice(0, 3).join(', ')
  if (code === 'ETIMEOUT' || code === 'ECONNREFUSED') return `no answer from ${servers} (${code})`
  return code === undefined ? message : `${servers} answered with an error (${code})`
}
