import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Owner } from '../../../foundation/model/entity.ts'

const maxTexts = 8192
/** Longer ones are rarely shared. */
const maxLength = 256
const maxOwners = 4096

/** Shares equal values among pods: namespaces, images, labels, owners. */
export class Interning {
  readonly #texts = small(new BoundedMap<string, string>(maxTexts))
  readonly #owners = small(new BoundedMap<string, Owner>(maxOwners))

  text(text: string): string {
    if (text === '' || text.length > maxLength) return text
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    this.#texts.set(text, text)
    return text
  }

  owner(owner: Owner): Owner {
    const known = this.#owners.get(owner.uid)
    if (known !== undefined && known.kind === owner.kind && known.name === owner.name) return known
    const kept = { kind: this.text(owner.kind), name: owner.name, uid: owner.uid }
    if (owner.uid !== '') this.#owners.set(owner.uid, kept)
    return kept
  }
}
