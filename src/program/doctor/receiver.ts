import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type LoadedConfig, notBuiltFeatures } from '../../config/index.ts'
import { type Endpoint, parseEndpoint } from '../../foundation/lib/endpoint.ts'
import { errorCode } from '../../foundation/lib/error-code.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { ExitCode } from '../../foundation/lib/start-error.ts'
import { within } from '../../foundation/lib/within.ts'
import { plainBatch, type Receipt, SendError, type Sender } from '../../foundation/model/batch.ts'
import { type Signal, signals } from '../../foundation/model/signal.ts'
import type { Finding } from '../../kernel/need.ts'
import { type OtlpOptions, openSender, otlpOptions } from '../agent/otlp-options.ts'
import { check } from './check.ts'
import { type ReceiverFault, receiverFaults } from './receiver-faults.ts'

type Found = Finding<ReceiverFault>

export const receiver = check({
  name: 'receiver',
  group: 'export',
  summary:
    'Each receiver accepts an empty request of each signal, with the configured headers, TLS and compression',
  reads: 'secrets',
  exit: ExitCode.exporting,
  impact: 'telemetry: it waits in the queue, and when the queue is full the oldest data is dropped',
  faults: receiverFaults,
  try: async ({ loaded, timeoutMs }) => {
    const receivers = new Map<string, { options: OtlpOptions; wanted: Signal[] }>()
    for (const signal of made(loaded)) {
      const options = otlpOptions(loaded.config, signal)
      if (options === undefined) continue
      const key = JSON.stringify(options)
      const receiver = receivers.get(key) ?? { options, wanted: [] }
      receivers.set(key, receiver)
      receiver.wanted.push(signal)
    }
    if (receivers.size === 0)
      return [{ fault: 'none', detail: 'no endpoint is configured: no data leaves this host' }]
    const tries = [...receivers.values()].map(each => tryReceiver(each.options, each.wanted, timeoutMs))
    return (await Promise.all(tries)).flat()
  },
})

/** Signals that this version produces and the configuration enables. */
function made({ config, origins }: LoadedConfig): readonly Signal[] {
  const absent = new Set(notBuiltFeatures(config, origins).map(({ key }) => key))
  const { logs, profiling } = config.agent
  return signals.filter(signal => {
    if (signal === 'logs') return logs.enabled && !absent.has('agent.logs')
    if (signal === 'profiles') return profiling.enabled && !absent.has('agent.profiling')
    return true
  })
}

async function tryReceiver(
  options: OtlpOptions,
  wanted: readonly Signal[],
  timeoutMs: number,
): Promise<Found[]> {
  let endpoint: Endpoint
  let sender: Sender
  try {
    const form = options.protocol === 'grpc' ? 'grpc' : 'http'
    endpoint = parseEndpoint(options.endpoint, options.insecure, form)
    sender = openSender({ ...options, timeoutMs })
  } catch (error) {
    return [{ fault: 'settings', detail: errorText(error) }]
  }
  try {
    const nameless = await nameFault(endpoint.host, timeoutMs)
    if (nameless !== undefined) return [nameless]
    const answers = new Map<string, { finding: Found; took: Signal[] }>()
    const found = await Promise.all(wanted.map(signal => trySignal(sender, signal, endpoint, timeoutMs)))
    for (const [i, finding] of found.entries()) {
      const key = JSON.stringify(finding)
      const answer = answers.get(key) ?? { finding, took: [] }
      answers.set(key, answer)
      answer.took.push(wanted[i]!)
    }
    return [...answers.values()].map(({ finding, took }) => {
      const names = took.join(', ')
      if ('ok' in finding) return { ok: `${sender.endpoint} ${finding.ok}: ${names}` }
      return {
        fault: finding.fault,
        detail: `cannot export ${names} to ${sender.endpoint}: ${finding.detail}`,
      }
    })
  } finally {
    await sender.close()
  }
}

/** Resolves the name separately, because the system's resolver waits too long. */
async function nameFault(host: string, timeoutMs: number): Promise<Found | undefined> {
  if (isIP(host) !== 0) return undefined
  const found = lookup(host).then(
    () => undefined,
    (error: NodeJS.ErrnoException): Found => ({
      fault: 'name',
      detail: `the name ${host} does not resolve (${error.code})`,
    }),
  )
  return within(
    timeoutMs,
    found,
    (): Found => ({ fault: 'name', detail: `no name server returned an address for ${host}` }),
  )
}

async function trySignal(
  sender: Sender,
  signal: Signal,
  endpoint: Endpoint,
  timeoutMs: number,
): Promise<Found> {
  const empty = plainBatch(signal, 0, new Uint8Array(0))
  try {
    return taken(await sender.send(empty, new AbortController().signal), endpoint.secure)
  } catch (error) {
    const detail = causeText(error, `cannot export ${signal} to ${sender.endpoint}: `)
    const fault = faultOf(error, detail)
    // A TLS server closes the connection on plain text, and so does one without HTTP/2.
    if (!endpoint.secure && (fault === 'no_grpc' || fault === 'no_http' || fault === 'lost')) {
      if (await speaksTls(endpoint, timeoutMs)) return { fault: 'wants_tls', detail: 'the server uses TLS' }
    }
    return { fault, detail }
  }
}

function taken({ message }: Receipt, secure: boolean): Found {
  const said = message === '' ? '' : `, saying "${message}"`
  return { ok: `accepted an empty request ${secure ? 'over TLS' : 'in plain text'}${said}` }
}

/** The sender's prefix before the cause names the signal, so findings would differ. */
function causeText(error: unknown, own: string): string {
  const text = errorText(error instanceof SendError && error.cause !== undefined ? error.cause : error)
  return text.startsWith(own) ? text.slice(own.length) : text
}

const certificateFaults: Readonly<Record<string, ReceiverFault>> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'authority',
  UNABLE_TO_GET_ISSUER_CERT: 'authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'authority',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'authority',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate_name',
  CERT_HAS_EXPIRED: 'expired',
  CERT_NOT_YET_VALID: 'expired',
  ERR_SSL_WRONG_VERSION_NUMBER: 'plain_text',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'plain_text',
}

/** Rejections by the receiver, by `error_type` of the metrics. */
const statusFaults: Readonly<Record<string, ReceiverFault>> = {
  dns: 'name',
  connect: 'connect',
  tls: 'tls',
  unauthenticated: 'unauthenticated',
  permission_denied: 'forbidden',
  unimplemented: 'unimplemented',
  unavailable: 'unavailable',
  resource_exhausted: 'unavailable',
  deadline_exceeded: 'unavailable',
  cancelled: 'unavailable',
  http_429: 'unavailable',
  http_502: 'unavailable',
  http_503: 'unavailable',
  http_504: 'unavailable',
}

function faultOf(error: unknown, detail: string): ReceiverFault {
  const code = errorCode(error)
  const known = certificateFaults[code]
  if (known !== undefined) return known
  if (/alert (certificate required|bad certificate|unknown ca|handshake failure)/i.test(detail))
    return 'client_certificate'
  if (/^cannot read (ca|cert|key)_file/.test(detail) || code.startsWith('ERR_OSSL_')) return 'files'
  if (/no gRPC status|without a gRPC status|Protocol error|HTTP_1_1_REQUIRED|no HTTP\/2/.test(detail))
    return 'no_grpc'
  if (/does not speak HTTP\/1\.1/.test(detail)) return 'no_http'
  if (/^HTTP 40[45] /.test(detail)) return 'path'
  if (/^the connection was lost/.test(detail)) return 'lost'
  const type = error instanceof SendError ? error.type : ''
  return statusFaults[type] ?? 'refused'
}

function speaksTls({ host, port }: Endpoint, timeoutMs: number): Promise<boolean> {
  return new Promise(resolve => {
    // Not verified, because nothing is sent.
    const socket = connectTls({ host, port, rejectUnauthorized: false, ALPNProtocols: ['h2', 'http/1.1'] })
    const end = (speaks: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(speaks)
    }
    const timer = setTimeout(end, timeoutMs, false)
    socket.once('secureConnect', () => end(true))
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
  })
}
