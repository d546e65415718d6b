import type { PreparedIntake, PreparedMetric, Sent } from '../foundation/model/prepared-metric.ts'
import type { Resource, Scope } from '../foundation/model/resource.ts'
import type { SignalTypeName } from '../foundation/model/signal-types.ts'
import type { Intake } from './batcher.ts'
import type { Account, TypeCount } from './ledger.ts'

/** Signal type of items (`signal_type` of the collection counters): one for all, or one for each count of an item. */
export type TypeOf<T> = SignalTypeName | ((item: T, at: number) => string)

/** Passes items on, and counts them by type. */
export class TypedIntake<T> implements Intake<T> {
  readonly #inner: Intake<T>
  readonly #account: Account
  readonly #typeOf: TypeOf<T>
  /** Counter, if all items have one type. */
  readonly #count: TypeCount | undefined

  constructor(inner: Intake<T>, account: Account, typeOf: TypeOf<T>) {
    this.#inner = inner
    this.#account = account
    this.#typeOf = typeOf
    this.#count = typeof typeOf === 'string' ? account.typed(typeOf) : undefined
  }

  add(resource: Resource, scope: Scope, item: T): void {
    const account = this.#account
    const typeOf = this.#typeOf
    const before = account.collected
    this.#inner.add(resource, scope, item)
    const taken = account.collected - before
    if (this.#count !== undefined) this.#count.items += taken
    else if (typeof typeOf !== 'string')
      for (let at = 0; at < taken; at++) account.typed(typeOf(item, at)).items++
  }
}

/** As `TypedIntake`, for recurring metrics, which have one type. */
export class TypedPrepared implements PreparedIntake {
  readonly #inner: PreparedIntake
  readonly #account: Account
  readonly #count: TypeCount

  constructor(inner: PreparedIntake, account: Account, type: SignalTypeName) {
    this.#inner = inner
    this.#account = account
    this.#count = account.typed(type)
  }

  prepare(...metric: Parameters<PreparedIntake['prepare']>): PreparedMetric | undefined {
    return this.#inner.prepare(...metric)
  }

  send(prepared: PreparedMetric, values: Float64Array, timeUs: number): Sent {
    const before = this.#account.collected
    const sent = this.#inner.send(prepared, values, timeUs)
    this.#count.items += this.#account.collected - before
    return sent
  }
}
