import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'

/** Marks a client that is in several groups. */
const several = ''

/**
 * The consumer group of each client, by its address and client name: clients coordinate their group on one connection
 * and fetch on others. If several groups are known for one name, none is reported.
 */
export class Groups {
  readonly #clients = small(new BoundedMap<string, BoundedMap<string, string>>(512))

  learn(address: string, client: string, group: string): void {
    let groups = this.#clients.get(address)
    if (groups === undefined) {
      groups = small(new BoundedMap(64))
      this.#clients.set(address, groups)
    }
    const known = groups.get(client)
    if (known === undefined) groups.set(client, group)
    else if (known !== group) groups.set(client, several)
  }

  /** '' if unknown. */
  of(address: string, client: string): string {
    return this.#clients.get(address)?.get(client) ?? ''
  }
}
