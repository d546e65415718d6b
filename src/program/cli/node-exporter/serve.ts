// The replaced exporter at work: collectors, page and server, until a signal ends it.

import type { AddressInfo } from 'node:net'
import { build } from '../../../foundation/lib/build.ts'
import { hostPort } from '../../../foundation/lib/host-port.ts'
import { parseListenAddress } from '../../../foundation/lib/listen-address.ts'
import { errorText, type Logger, limitRepeats } from '../../../foundation/lib/logger.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { Listener, listen, listenOnDescriptor } from '../../../view/api/listeners.ts'
import { MetricsEndpoint, metricsSubject } from '../../../view/api/metrics-endpoint.ts'
import { SystemMetrics } from '../../agent/system-metrics.ts'
import type { ExporterSettings } from './flags.ts'
import type { WebConfig } from './web-config.ts'

/** Time limit for collectors if the scraper does not send its own. */
const timeoutMs = 10_000

/** A running server. */
export interface Exporter {
  close(): Promise<void>
}

/** Starts the collectors and serves them. Rejects with a `StartError` on failure. */
export async function startExporter(settings: ExporterSettings, log: Logger): Promise<Exporter> {
  const { version } = build()
  const secured = settings.webConfigFile === '' ? undefined : await import('./secured.ts')
  const config = secured && new secured.WebConfig(settings.webConfigFile)
  const web = orStartError(() => config?.current())
  const metrics = orStartError(() => hostMetrics(settings, log, () => endpoint.stats()))
  const endpoint: MetricsEndpoint = new MetricsEndpoint({
    source: metrics,
    path: settings.metricsPath,
    maxRequests: settings.maxRequests,
    timeoutMs,
    title: 'Node Exporter',
    version,
    ...(config && { admit: secured.admission(config, web?.rate, log) }),
    log,
  })
  log.info('Enabled collectors', { collectors: metrics.enabled.join() })
  const { dispatcher, limits } = endpoint
  const options = { subject: metricsSubject, dispatcher, limits, log, admin: false }
  const listeners: Listener[] = []
  const close = async () => {
    await Promise.all(listeners.map(listener => listener.close()))
    metrics.close()
  }
  const open: Open = async begin => {
    const listener = web?.tls ? await Listener.tls(options, web.tls) : Listener.plain(options)
    if (web?.tls) followCertificates(listener, config!, log)
    listener.server.on('error', error => log.error('a server failed', { reason: errorText(error) }))
    await begin(listener)
    listeners.push(listener)
    const { address, port } = listener.server.address() as AddressInfo
    log.info('Listening on', { address: hostPort(address, port), tls: web?.tls !== undefined })
  }
  try {
    await openAll(settings, open)
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}

/** The collectors, named and timed as in Node Exporter. `scrapes` counts the requests for the page. */
function hostMetrics(
  settings: ExporterSettings,
  log: Logger,
  scrapes: MetricsEndpoint['stats'],
): SystemMetrics {
  const { version, commit } = build()
  return new SystemMetrics({
    namespace: 'node',
    path: settings.path,
    collectors: settings.chosen,
    cardinality: {
      enabled: false,
      max_metrics: 0,
      include_metrics: [],
      exclude_metrics: [],
      drop_labels: [],
    },
    maxProcs: 64,
    extended: false,
    intervalMs: 0,
    timeoutMs,
    build: { version, revision: commit },
    ...(settings.exporterMetrics && { scrapes }),
    log,
  })
}

/** Opens one listener with the function that begins to listen. */
type Open = (begin: (listener: Listener) => Promise<void>) => Promise<void>

/** Opens the sockets from systemd, or all addresses of the flags. */
async function openAll({ systemdSocket, listen: addresses }: ExporterSettings, open: Open): Promise<void> {
  if (systemdSocket) {
    for (const fd of handedOver()) await open(({ server }) => listenOnDescriptor(server, fd))
    return
  }
  for (const text of addresses) {
    const address = parseListenAddress(text)
    if (address === undefined)
      throw unusable(
        `--web.listen-address is "${text}", expected an address such as ":9100" or "127.0.0.1:9100"`,
      )
    await open(({ server }) => listen(server, address, text, '--web.listen-address'))
  }
}

/** Each new connection uses the current TLS files; while they are invalid, none is served. */
function followCertificates(listener: Listener, config: WebConfig, log: Logger): void {
  const limited = limitRepeats(log, 60_000)
  let current = config.current().tls
  // Before the runtime uses its current certificate for the connection.
  listener.server.prependListener('connection', socket => {
    try {
      const { tls } = config.current()
      if (tls === undefined) throw new Error('TLS was removed from it; restart to serve without TLS')
      if (tls !== current) listener.setTls(tls)
      current = tls
    } catch (error) {
      limited('error', 'config', 'cannot load the web configuration', { reason: errorText(error) })
      socket.destroy()
    }
  })
}

/** Descriptors of the sockets passed by systemd (sd_listen_fds(3)). */
function handedOver(env: NodeJS.ProcessEnv = process.env): number[] {
  const count = Number(env.LISTEN_FDS ?? 0)
  if (Number(env.LISTEN_PID) !== process.pid || !(count > 0))
    throw unusable('systemd passed no socket; start through a socket unit, or without --web.systemd-socket')
  return Array.from({ length: count }, (_, i) => 3 + i)
}

function orStartError<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw error instanceof StartError ? error : unusable(errorText(error), error)
  }
}

function unusable(why: string, cause?: unknown): StartError {
  return new StartError(`cannot serve ${metricsSubject}: ${why}`, ExitCode.general, cause)
}
