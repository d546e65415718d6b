import type { Scope } from '../../../foundation/model/resource.ts'
import type { Stage } from '../processor.ts'

/** Results of the stages for each scope, cached. */
export class Scopes {
  readonly #stages: readonly Stage[]
  readonly #known = new WeakMap<Scope, Scope>()

  constructor(stages: readonly Stage[]) {
    this.#stages = stages.filter(({ scope }) => scope !== undefined)
  }

  after(original: Scope): Scope {
    if (this.#stages.length === 0) return original
    let scope = this.#known.get(original)
    if (scope === undefined) {
      scope = original
      for (const stage of this.#stages) scope = stage.scope!(scope)
      this.#known.set(original, scope)
    }
    return scope
  }
}
