// The agent's endpoint of host metrics on its address, with TLS if configured.

import type { AddressInfo } from 'node:net'
import { type Change, change } from '../../foundation/lib/change.ts'
import { hostPort } from '../../foundation/lib/host-port.ts'
import { parseListenAddress } from '../../foundation/lib/listen-address.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { ExitCode, exitCodeOf, StartError } from '../../foundation/lib/start-error.ts'
import type { Duplicate } from './doors.ts'
import { isLoopback } from './guard.ts'
import { Listener, listen } from './listeners.ts'
import { type MetricsEndpoint, metricsSubject } from './metrics-endpoint.ts'
import type { TlsMaterial } from './tls-files.ts'

/** The keys of `agent.nodeexporter` that the server follows, spelled as in the file. */
export interface MetricsServerSettings {
  readonly listen_address: string
  readonly tls: {
    readonly enabled: boolean
    readonly cert_file: string
    readonly key_file: string
    readonly client_auth: boolean
    readonly client_ca_file: string
  }
}

export interface MetricsServerOptions {
  readonly settings: MetricsServerSettings
  readonly endpoint: MetricsEndpoint
  readonly log: Logger
  /** If absent, one connection is accepted per turn of the loop. */
  readonly duplicate?: Duplicate
}

export interface MetricsServer {
  readonly port: number
  /** The URL of a path, with an address that works from this host. */
  url(path: string): string
  /** Reachable from other hosts, without client certificates. */
  readonly exposed: boolean
  /** Currently open. */
  readonly connections: number
  /**
   * Prepares other settings. `listen_address` and `tls.enabled` stay as they are. Reads the TLS files again; throws a
   * readable error if they cannot be used.
   */
  prepare(settings: MetricsServerSettings): Change
  close(): Promise<void>
}

const key = 'agent.nodeexporter'

/** Starts to listen. Rejects with a `StartError` on failure. */
export async function startMetricsServer({
  settings,
  endpoint,
  log,
  duplicate,
}: MetricsServerOptions): Promise<MetricsServer> {
  const { listen_address } = settings
  const address = parseListenAddress(listen_address)
  if (address === undefined)
    throw unusable(`${key}.listen_address is "${listen_address}"; write it as ":9100" or "127.0.0.1:9100"`)
  const tls = settings.tls.enabled ? await import('./tls-files.ts') : undefined
  const materialOf = (next: MetricsServerSettings): TlsMaterial | undefined => {
    if (tls === undefined || !next.tls.enabled) return undefined
    const { client_auth, client_ca_file } = next.tls
    if (client_auth && client_ca_file === '')
      throw new Error(`${key}.tls.client_auth is true and client_ca_file is empty; name a PEM file`)
    return tls.readTlsFiles({ ...next.tls, client_ca_file: client_auth ? client_ca_file : '' }, `${key}.tls`)
  }
  let material: TlsMaterial | undefined
  try {
    material = materialOf(settings)
  } catch (error) {
    throw unusable(errorText(error), error)
  }
  const { dispatcher, limits } = endpoint
  const options = { subject: metricsSubject, dispatcher, limits, log, admin: false }
  const listener = material ? await Listener.tls(options, material) : Listener.plain(options)
  await listen(listener.server, address, listen_address, `${key}.listen_address`)
  if (duplicate !== undefined) listener.openDoors(duplicate)
  listener.server.on('error', error => log.error('the endpoint of host metrics failed', { error }))
  const bound = listener.server.address() as AddressInfo
  const host = ['::', '0.0.0.0'].includes(bound.address) ? '127.0.0.1' : bound.address
  return {
    port: bound.port,
    url: path => `${material ? 'https' : 'http'}://${hostPort(host, bound.port)}${path}`,
    get exposed() {
      return !isLoopback(bound.address) && material?.clients === undefined
    },
    get connections() {
      return listener.connections.size
    },
    prepare(next) {
      const renewed = materialOf(next)
      return change(() => {
        if (renewed === undefined) return
        const otherClients = renewed.ca !== material?.ca
        material = renewed
        listener.setTls(renewed)
        // Clients admitted by the old authorities, or without any, must present a certificate again.
        if (otherClients) listener.connections.leave()
      })
    },
    close: () => listener.close(),
  }
}

function unusable(why: string, cause?: unknown): StartError {
  return new StartError(`cannot serve ${metricsSubject}: ${why}`, exitCodeOf(cause, ExitCode.usage), cause)
}
