import { Backoff } from '../../foundation/lib/backoff.ts'
import { MetadataError, MetadataService } from '../../foundation/lib/metadata-service.ts'
import type { CloudProvider, Dmi } from '../../foundation/model/cloud-provider.ts'
import type { Cloud, EntitySink, SourceState } from '../../foundation/model/entity.ts'
import { readDmi } from './firmware.ts'

export interface CloudProviderSettings {
  readonly enabled: boolean
  /**
   * '': the provider's own, which is asked only where the machine is one of it. Written, it is asked on every machine,
   * wherever it is: who writes an address wants it asked, and a name in it is looked up.
   */
  readonly endpoint: string
  /** Milliseconds, for everything that is asked of it at one time. */
  readonly timeout: number
}

export interface CloudSourceOptions {
  readonly providers: readonly CloudProvider[]
  readonly settings: Readonly<Record<CloudProvider['name'], CloudProviderSettings>>
  /** Time from an answer to the next question. */
  readonly refreshMs: number
  /** `/sys`, or where it is mounted. */
  readonly sysfs: string
  readonly sink: Pick<EntitySink, 'cloud'>
  /** Told when the answers cease, and when there is none at the start; not of every attempt. */
  readonly warn: (reason: string, hint: string) => void
}

/** How it stands; texts that are not known are ''. Without a hint nothing is wrong: there is nobody to ask. */
export interface CloudState extends SourceState {
  /** `cloud.provider` of semantic conventions. */
  readonly provider: string
  readonly region: string
  readonly instanceId: string
}

/** A provider that may be this machine's. */
interface Candidate {
  readonly provider: CloudProvider
  readonly endpoint: string
  readonly timeoutMs: number
}

/** The first wait after a failure: the network may be on its way up. */
const retryMs = 5_000
/** A timer of Node that is longer does not wait at all. */
const longestWaitMs = 2 ** 31 - 1

/**
 * Tells which cloud the machine is in. The candidates are asked all at once, and the first good answer counts. It is
 * asked for again every `refreshMs`, in a new conversation with a new token; what was found stays until something else
 * is found.
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

  /** Resolves as soon as the cloud is known, or that it cannot be known at present. Never rejects. */
  async start(): Promise<void> {
    const dmi = await readDmi(this.#options.sysfs)
    if (this.#stopped) return
    this.#candidates = candidates(this.#options, dmi)
    if (this.#candidates.length > 0) return this.#refresh()
    this.#reason = nobody(this.#options, dmi)
    this.#options.sink.cloud(undefined)
  }

  /** Ends what is under way; the sink is told nothing more. */
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
      // A machine does not move: the others need not be asked again.
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
    // Once for each time that it falls silent, not for each attempt.
    if (first) this.#options.warn(reason, hint)
  }
}

/** Why a candidate gave no answer. */
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

/** Why nobody is asked. */
function nobody({ providers }: CloudSourceOptions, dmi: Dmi): string {
  const [provider] = providers.filter(provider => provider.recognise(dmi))
  if (provider !== undefined) return `cloud.${provider.name}.enabled is false`
  const maker = (dmi.sys_vendor || dmi.bios_vendor).replace(/[^ -~]/g, '?').slice(0, 64)
  const says = maker === '' ? 'the firmware names no maker' : `the firmware names "${maker}"`
  return `not a cloud that svc supports: ${says}`
}

/** Without the user and the password that may stand in it. */
function origin(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).origin : 'it'
}
