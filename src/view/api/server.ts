// The management API's server. Every answer, even to input that is not HTTP, is a document of the API.

import type { AddressInfo } from 'node:net'
import { type Change, change } from '../../foundation/lib/change.ts'
import { hostPort } from '../../foundation/lib/host-port.ts'
import { parseListenAddress } from '../../foundation/lib/listen-address.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { ExitCode, exitCodeOf, StartError } from '../../foundation/lib/start-error.ts'
import { listenOnSocket } from './admin-socket.ts'
import { failure } from './answer.ts'
import type { BrowserKey } from './browser-key.ts'
import { type Answered, Dispatcher, type PolicySettings } from './dispatch.ts'
import type { Duplicate } from './doors.ts'
import { type Arrival, isLoopback, type PeerUser } from './guard.ts'
import { ownNames } from './host-names.ts'
import { type ApiLimits, defaultLimits, Listener, listen } from './listeners.ts'
import type { Operation } from './operation.ts'
import type { TlsMaterial, TlsSettings } from './tls-files.ts'

/** The keys of `self_telemetry` that the server follows, spelled as in the file. */
export interface ApiSettings extends PolicySettings {
  readonly listen: string
  readonly tls: TlsSettings
  /** Path of a Unix socket, '' for none. */
  readonly admin_socket: string
}

export interface ApiOptions {
  readonly settings: ApiSettings
  readonly operations: readonly Operation[]
  readonly log: Logger
  /** The user of the peer of a connection, from the kernel. */
  readonly peerUser: PeerUser
  /** If absent, one connection is accepted per turn of the loop. */
  readonly duplicate?: Duplicate
  /** Lets browsers in; if absent, none. */
  readonly browserKey?: BrowserKey | undefined
  readonly limits?: Partial<ApiLimits>
  /** Called for every request that was read and answered. */
  readonly observe?: (request: Answered) => void
}

export interface ApiStats {
  /** Answers by status, including those to unreadable requests. */
  readonly requests: ReadonlyMap<number, number>
  readonly refused: {
    readonly unauthorized: number
    readonly forbidden: number
    readonly rate_limited: number
    /** Connections closed because too many requests were queued on them. */
    readonly pipelined: number
  }
  /** Currently open. */
  readonly connections: number
  /** Connections closed because there were too many. */
  readonly dropped_connections: number
  readonly failed_handshakes: number
}

export interface Api {
  readonly port: number
  /** The URL of a path, with an address that works from this host. */
  url(path: string): string
  /** Reachable from other hosts, without a token or certificate. */
  readonly exposed: boolean
  /** Path of the admin socket, '' if there is none. */
  readonly socket: string
  /** Why the configured admin socket does not exist. */
  readonly socketFault: string | undefined
  stats(): ApiStats
  /**
   * Prepares other settings. `listen`, `admin_socket` and `tls.enabled` stay as they are. Reads the TLS files again;
   * throws a readable error if they or the settings cannot be used.
   */
  prepare(settings: ApiSettings): Change
  /** The agent is stopping: followed documents end, and each connection closes after its next answer. */
  finish(): void
  close(): Promise<void>
}

const subject = 'the management API'

/** Starts to listen. Rejects with a `StartError` on failure, or if the settings cannot be secured. */
export async function startApi(options: ApiOptions): Promise<Api> {
  const { settings, log } = options
  const limits = { ...defaultLimits, ...options.limits }
  const address = addressOf(settings.listen)
  const tls = settings.tls.enabled ? await import('./tls-files.ts') : undefined
  const arrival = { tls: tls !== undefined, port: address.port }
  let material: TlsMaterial | undefined
  let dispatcher: Dispatcher
  try {
    material = tls?.readTlsFiles(settings.tls, 'self_telemetry.tls')
    dispatcher = dispatcherOf(options, limits, arrival)
  } catch (error) {
    throw unusable(errorText(error), error)
  }
  const common = { subject, dispatcher, limits, log }
  const main = material
    ? await Listener.tls({ ...common, admin: false }, material)
    : Listener.plain({ ...common, admin: false })
  await listen(main.server, address, settings.listen, 'self_telemetry.listen')
  if (options.duplicate !== undefined) main.openDoors(options.duplicate)
  main.server.on('error', error => log.error('the management API failed', { error }))
  const bound = main.server.address() as AddressInfo
  arrival.port = bound.port
  const host = ['::', '0.0.0.0'].includes(bound.address) ? '127.0.0.1' : bound.address
  const admin = Listener.plain({ ...common, admin: true })
  const socket = await openAdminSocket(admin, settings.admin_socket, log)
  let requiresToken = settings.auth.enabled
  return {
    port: bound.port,
    url: path => `${material ? 'https' : 'http'}://${hostPort(host, bound.port)}${path}`,
    get exposed() {
      return !isLoopback(bound.address) && !requiresToken && material?.ca === undefined
    },
    socket: socket.remove ? settings.admin_socket : '',
    socketFault: socket.fault,
    stats: () => statsOf(dispatcher, main, admin),
    prepare(next) {
      const policy = dispatcher.policy(next)
      const renewed = tls && next.tls.enabled ? tls.readTlsFiles(next.tls, 'self_telemetry.tls') : undefined
      return change(() => {
        dispatcher.adopt(policy)
        requiresToken = next.auth.enabled
        if (renewed === undefined) return
        const otherClients = renewed.ca !== material?.ca
        material = renewed
        main.setTls(renewed)
        // Clients admitted by the old authorities, or without any, must present a certificate again.
        if (otherClients) main.connections.leave()
      })
    },
    finish() {
      main.connections.finish()
      admin.connections.finish()
    },
    async close() {
      socket.remove?.()
      await Promise.all([main.close(), socket.remove && admin.close()])
    },
  }
}

function addressOf(listen: string) {
  const address = parseListenAddress(listen)
  if (address) return address
  throw unusable(
    `self_telemetry.listen is "${listen}"; write it as ":19090", "127.0.0.1:19090" or "[::1]:19090"`,
  )
}

function dispatcherOf(
  { settings, operations, log, observe, peerUser, browserKey }: ApiOptions,
  { urlBytes, bodyBytes }: ApiLimits,
  arrival: Arrival,
): Dispatcher {
  const people = { peerUser, key: browserKey }
  const common = { subject, operations, failure, settings, arrival, ownNames, people, log, observe }
  return new Dispatcher({ ...common, urlBytes, bodyBytes })
}

/** Without `remove` there is no socket. */
async function openAdminSocket(
  { server }: Listener,
  path: string,
  log: Logger,
): Promise<{ readonly remove?: () => void; readonly fault?: string }> {
  if (path === '') return {}
  try {
    const remove = await listenOnSocket(server, path)
    server.on('error', error => log.error('the admin socket failed', { error }))
    return { remove }
  } catch (error) {
    return { fault: errorText(error) }
  }
}

function statsOf(dispatcher: Dispatcher, main: Listener, admin: Listener): ApiStats {
  return {
    requests: dispatcher.answered,
    refused: dispatcher.refused,
    connections: main.connections.size + admin.connections.size,
    dropped_connections: main.connections.dropped + admin.connections.dropped,
    failed_handshakes: main.failedHandshakes,
  }
}

function unusable(why: string, cause?: unknown): StartError {
  return new StartError(`cannot serve the management API: ${why}`, exitCodeOf(cause, ExitCode.usage), cause)
}
