import {
  DBusClient,
  DBusError,
  type DBusRequest,
  parseDBusAddress,
} from '../../../foundation/lib/dbus-client.ts'
import type { DBusValue, DBusVariant } from '../../../foundation/lib/dbus-value.ts'
import type { Host } from '../../../foundation/model/host.ts'

/** Maximum concurrent calls: a bus may limit a peer to 128 open calls. */
const width = 16

/** System bus at `DBUS_SYSTEM_BUS_ADDRESS`, or at its usual path on the host or in a container. */
export function systemBus({ root }: Host): DBusClient {
  const usual = 'run/dbus/system_bus_socket'
  return new DBusClient({
    isBus: true,
    sockets() {
      const address = process.env.DBUS_SYSTEM_BUS_ADDRESS
      return address ? parseDBusAddress(address) : [...new Set([root.at(usual), `/${usual}`])]
    },
  })
}

/** A service on the bus, queried within one scrape. */
export class BusService {
  readonly #client: DBusClient
  readonly #destination: string
  readonly #signal: AbortSignal

  constructor(client: DBusClient, destination: string, signal: AbortSignal) {
    this.#client = client
    this.#destination = destination
    this.#signal = signal
  }

  async call(request: Omit<DBusRequest, 'destination'>): Promise<readonly DBusValue[]> {
    return this.#client.call({ ...request, destination: this.#destination }, this.#signal)
  }

  /** Property of this type; undefined if the service rejects the request, or has another type. */
  async property(path: string, owner: string, name: string, type: string): Promise<DBusValue | undefined> {
    try {
      const [variant] = await this.call({
        path,
        interface: 'org.freedesktop.DBus.Properties',
        member: 'Get',
        signature: 'ss',
        body: [owner, name],
        returns: 'v',
      })
      const { signature, value } = variant as DBusVariant
      return signature === type ? value : undefined
    } catch (error) {
      if (error instanceof DBusError) return undefined
      throw error
    }
  }
}

/** Reads objects, several at a time. Rejects with the first error. */
export async function readAll<T>(objects: readonly T[], read: (object: T) => Promise<void>): Promise<void> {
  let next = 0
  const work = async () => {
    try {
      while (next < objects.length) await read(objects[next++]!)
    } finally {
      next = objects.length // stops the other workers after a failure
    }
  }
  await Promise.all(Array.from({ length: width }, work))
}
