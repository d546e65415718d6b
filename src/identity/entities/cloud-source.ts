import { Backoff } from '../../foundation/lib/backoff.ts'
import { MetadataError, MetadataService } from '../../foundation/lib/metadata-service.ts'
import type { CloudProvider, Dmi } from '../../foundation/model/cloud-provider.ts'
import type { Cloud, EntitySink, SourceState } from '../../foundation/model/entity.ts'
import { readDmi } from './firmware.ts'

export interface CloudProviderSettings {
  readonly enabled: boolean
  /**
   * '' for the provider's own endpoint, which is queried only if the firmware is the provider's. A configured endpoint
   * is queried on every machine, and its host name is resolved.
   */
  readonly endpoint: string
  /** Milliseconds for all requests of one query. */
  readonly timeout: number
}

export interface CloudSourceOptions {
  readonly providers: readonly CloudProvider[]
  readonly settings: Readonly<Record<CloudProvider['name'], CloudProviderSettings>>
  /** Milliseconds from a response to the next query. */
  readonly refreshMs: number
  /** Mount point of sysfs, usually `/sys`. */
  readonly sysfs: string
  readonly sink: Pick<EntitySink, 'cloud'>
  /** Called when responses stop, and when there is none at the start; not for every attempt. */
  readonly warn: (reason: string, hint: string) => void
}

/** State of the source; unknown texts are ''. Without a hint there is no fault: no provider to query. */
export interface CloudState extends SourceState {
  /** `cloud.provider` of semantic conventions. */
  readonly provider: string
  readonly region: string
  readonly instanceId: string
}

/** A provider whose cloud this machine may be in. */
interface Candidate {
  readonly provider: CloudProvider
  readonly endpoint: string
  readonly timeoutMs: number
}

/** First wait after a failure: the network may not be up yet. */
const retryMs = 5_000
/** Longer Node.js timers fire immediately. */
const longestWaitMs = 2 ** 31 - 1

/**
 * Finds the cloud that the machine is in. Queries all candidates at once; the first good response wins. Repeats every
 * `refreshMs` on a new connection with a new token, and keeps the last result until there is a new one.
 */
export class CloudSource {
  readonly #options: CloudSourceOptions
  readonly #backoff: Backoff
  readonly #running = new Set<MetadataService>()
  #candidates: readonly Candidate[] = []
  #found: Cloud | undefined
  #connected = false
  #reason = ''
  #hint = ''
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: CloudSourceOptions) {
    this.#options = options
    const initialMs = Math.min(retryMs, options.refreshMs)
    this.#backoff = new Backoff({ initialMs, maxMs: options.refreshMs, multiplier: 2, jitter: 0.2 })
  }

  get state(): CloudState {
    const { provider = '', region = '', instanceId = '' } = this.#found ?? {}
    return {
      connected: this.#connected,
      reason: this.#reason,
      hint: this.#hint,
      provider,
      region,
      instanceId,
    }
  }

  /** Resolves once the cloud is known, or cannot be known at present. Never rejects. */
  async start(): Promise<void> {
    const dmi = await readDmi(this.#options.sysfs)
    if (this.#stopped) return
    this.#candidates = candidates(this.#options, dmi)
    if (this.#candidates.length > 0) return this.#refresh()
    this.#reason = noCandidates(this.#options, dmi)
    this.#options.sink.cloud(undefined)
  }

  /** Cancels queries; the sink receives nothing more. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#end()
  }

  async #refresh(): Promise<void> {
    const answer = await Promise.any(this.#candidates.map(one => this.#ask(one))).catch(
      (error: AggregateError) => error.errors as readonly Failure[],
    )
    if (this.#stopped) return
    if ('cloud' in answer) {
      // Machines do not move between clouds, so the others are not queried again.
      this.#candidates = [answer.candidate]
      this.#take(answer.cloud)
    } else this.#miss(answer)
    const waitMs = this.#connected ? this.#options.refreshMs : this.#backoff.next()
    this.#timer = setTimeout(() => void this.#refresh(), Math.min(waitMs, longestWaitMs))
    this.#timer.unref()
  }

  async #ask(candidate: Candidate): Promise<{ readonly candidate: Candidate; readonly cloud: Cloud }> {
    const service = new MetadataService(candidate)
    this.#running.add(service)
    try {
      const cloud = await candidate.provider.read(service)
      this.#end()
      return { candidate, cloud }
    } catch (error) {
      throw new Failure(candidate, error as Error)
    } finally {
      service.close()
      this.#running.delete(service)
    }
  }

  #end(): void {
    for (const service of this.#running) service.close()
  }

  #take(cloud: Cloud): void {
    this.#backoff.reset()
    this.#connected = true
    this.#reason = ''
    this.#hint = ''
    this.#found = cloud
    this.#options.sink.cloud(cloud)
  }

  #miss(failures: readonly Failure[]): void {
    const kept = this.#found === undefined ? '' : '; keeping the last answer'
    const reason = failures.map(failure => failure.message).join('; ') + kept
    const hint = [...new Set(failures.map(failure => failure.hint))].join('; ')
    const first = this.#connected || this.#reason === ''
    this.#connected = false
    this.#reason = reason
    this.#hint = hint
    // Once per outage, not per attempt.
    if (first) this.#options.warn(reason, hint)
  }
}

/** Failed query of a candidate. */
class Failure extends Error {
  readonly hint: string

  constructor({ provider: { name }, endpoint }: Candidate, cause: Error) {
    super(`${name}: ${cause.message}`, { cause })
    this.hint =
      (cause instanceof MetadataError && cause.hint) ||
      `allow svc to reach ${origin(endpoint)} (firewalls, network policies), correct cloud.${name}.endpoint, or set cloud.${name}.enabled to false`
  }
}

function candidates({ providers, settings }: CloudSourceOptions, dmi: Dmi): Candidate[] {
  const found: Candidate[] = []
  for (const provider of providers) {
    const { enabled, endpoint, timeout } = settings[provider.name]
    if (enabled && (endpoint !== '' || provider.recognise(dmi)))
      found.push({ provider, endpoint: endpoint || provider.endpoint, timeoutMs: timeout })
  }
  return found
}

/** Reason for having no candidates. */
function noCandidates({ providers }: CloudSourceOptions, dmi: Dmi): string {
  const [provider] = providers.filter(provider => provider.recognise(dmi))
  if (provider !== undefined) return `cloud.${provider.name}.enabled is false`
  const maker = (dmi.sys_vendor || dmi.bios_vendor).replace(/[^ -~]/g, '?').slice(0, 64)
  const says = maker === '' ? 'the firmware names no maker' : `the firmware names "${maker}"`
  return `not a cloud that svc supports: ${says}`
}

/** Endpoint without user and password. */
function origin(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).origin : 'it'
}
