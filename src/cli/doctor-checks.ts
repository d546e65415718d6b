// What doctor tries besides the kernel: the configuration, the runtime, ports and receivers.

import { createServer } from 'node:net'
import { listenFailure } from '../api/server.ts'
import { type Config, type LoadedConfig, notBuiltFeatures } from '../config/index.ts'
import { parseEndpoint } from '../lib/endpoint.ts'
import { ConnectError, Http2Connector } from '../lib/http2-connector.ts'
import { parseListenAddress } from '../lib/listen-address.ts'
import { errorText } from '../lib/logger.ts'
import { portHolder } from '../lib/port-holder.ts'
import { signals } from '../model/signal.ts'

/** `unknown` is what could not be tried: it is never shown as missing. `note` is worth knowing and no problem. */
export type CheckState = 'ok' | 'limited' | 'missing' | 'unknown' | 'note'

export interface Check {
  readonly name: string
  readonly state: CheckState
  readonly detail: string
  /** What is lost by it. */
  readonly lose?: string
  readonly mend?: string
}

export function configChecks(loaded: LoadedConfig): Check[] {
  const { problems, file, config, origins } = loaded
  const name = 'configuration'
  if (problems.length > 0) {
    return [
      {
        name,
        state: 'missing',
        detail: `${file ?? 'the environment'}: ${problems.length} problem${problems.length === 1 ? '' : 's'}; the checks below use defaults in their place`,
        lose: 'the agent does not start',
        mend: 'svc validate shows each of them with its place',
      },
    ]
  }
  const checks: Check[] = [
    { name, state: 'ok', detail: file === null ? 'no file, using defaults' : `${file} is valid` },
  ]
  for (const detail of loaded.warnings) checks.push({ name, state: 'note', detail })
  const features = notBuiltFeatures(config, origins)
  for (const { key, why } of features.filter(({ explicit }) => explicit))
    checks.push({
      name: 'not built',
      state: 'limited',
      detail: `${key} is set: ${why}`,
      mend: 'leave it out',
    })
  const byDefault = features.filter(({ explicit }) => !explicit)
  if (byDefault.length > 0) {
    const keys = grouped(byDefault.map(({ key }) => key)).join(', ')
    checks.push({
      name: 'not built',
      state: 'note',
      detail: `on by default, but not in this version: ${keys}`,
    })
  }
  return checks
}

/** Keys of one branch put together: `a.{b,c}`. */
function grouped(keys: readonly string[]): string[] {
  const branches = new Map<string, string[]>()
  for (const key of keys) {
    const dot = key.lastIndexOf('.')
    const branch = key.slice(0, dot + 1)
    branches.set(branch, [...(branches.get(branch) ?? []), key.slice(dot + 1)])
  }
  return [...branches].map(
    ([branch, names]) => `${branch}${names.length > 1 ? `{${names.join(',')}}` : names[0]}`,
  )
}

/** `version` as Node says it, `flags` those that it was started with. */
export function runtimeChecks(
  version = process.version,
  flags: readonly string[] = process.execArgv,
): Check[] {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  const name = 'runtime'
  const mend = 'start with bin/svc, which brings its own runtime'
  const checks: Check[] = []
  if (major < 20 || (major === 20 && minor < 15)) {
    checks.push({
      name,
      state: 'missing',
      detail: `Node ${version} is older than 20.15`,
      lose: 'svc may fail',
      mend,
    })
  } else if (major < 22) {
    checks.push({ name, state: 'limited', detail: `Node ${version} gets no security fixes any more`, mend })
  } else {
    checks.push({ name, state: 'ok', detail: `Node ${version}` })
  }
  const missing = ['--optimize-for-size', '--max-semi-space-size', '--max-old-space-size'].filter(
    flag => !flags.some(given => given.replaceAll('_', '-').startsWith(flag)),
  )
  checks.push(
    missing.length === 0
      ? { name: 'memory', state: 'ok', detail: 'heap bounds are set' }
      : {
          name: 'memory',
          state: 'note',
          detail: `started without ${missing.join(' ')}: the agent takes more memory than it needs`,
          mend,
        },
  )
  return checks
}

/** Tries to listen where the management API would. */
export async function managementCheck({ enabled, listen }: Config['self_telemetry']): Promise<Check> {
  const name = 'management'
  if (!enabled) return { name, state: 'note', detail: 'self_telemetry.enabled is false' }
  const address = parseListenAddress(listen)
  if (!address) return { name, state: 'missing', detail: `"${listen}" is no address to listen on` }
  const error = await tryListen(address)
  if (!error) return { name, state: 'ok', detail: `${listen} is free` }
  const holder = error.code === 'EADDRINUSE' ? portHolder(address.port) : undefined
  if (holder?.name === 'svc')
    return { name, state: 'ok', detail: `${listen} is held by svc (pid ${holder.pid}), which runs already` }
  const [cause] = listenFailure(error, address.port)
  return {
    name,
    state: 'missing',
    detail: `cannot listen on ${listen}: ${cause}`,
    lose: 'the agent does not start',
    mend: 'set self_telemetry.listen to a free address',
  }
}

function tryListen(address: { host?: string; port: number }): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', resolve)
    server.listen(address, () => server.close(() => resolve(undefined)))
  })
}

/** Connects to each receiver as the exporter would: TCP, TLS where it is asked for, HTTP/2. Sends nothing. */
export async function exportChecks({ otlp }: Config, timeoutMs = 3000): Promise<Check[]> {
  const receivers = new Map<string, Config['otlp']['traces']>()
  for (const signal of signals) {
    const own = otlp[signal]
    const endpoint = own.endpoint || otlp.endpoint
    if (!own.enabled || endpoint === '') continue
    const { insecure, tls } = own
    receivers.set(JSON.stringify([endpoint, insecure, tls]), { ...own, endpoint })
  }
  if (receivers.size === 0) {
    return [
      {
        name: 'export',
        state: 'note',
        detail: 'no endpoint is configured, nothing leaves this host',
        mend: 'set otlp.endpoint to host:port of a receiver',
      },
    ]
  }
  return Promise.all([...receivers.values()].map(receiver => tryReceiver(receiver, timeoutMs)))
}

async function tryReceiver(otlp: Config['otlp']['traces'], timeoutMs: number): Promise<Check> {
  const name = 'export'
  const lose = 'what is collected waits in the queue and is lost when it is full'
  let connector: Http2Connector | undefined
  try {
    const { host, port, secure } = parseEndpoint(otlp.endpoint, otlp.insecure)
    const tls = {
      caFile: otlp.tls.ca_file,
      certFile: otlp.tls.cert_file,
      keyFile: otlp.tls.key_file,
      serverName: otlp.tls.server_name,
      insecureSkipVerify: otlp.tls.insecure_skip_verify,
    }
    connector = new Http2Connector({ host, port, tls: secure ? tls : undefined, connectTimeoutMs: timeoutMs })
    await connector.connection()
    return {
      name,
      state: 'ok',
      detail: `${host}:${port} takes connections${secure ? ' over TLS' : ', in plain text'}`,
    }
  } catch (error) {
    const mend = mends[error instanceof ConnectError ? error.type : 'connect']
    return {
      name,
      state: 'missing',
      detail: `cannot reach ${otlp.endpoint}: ${errorText(error)}`,
      lose,
      mend,
    }
  } finally {
    connector?.close()
  }
}

const mends = {
  dns: 'check the host name in otlp.endpoint',
  connect: 'check that the receiver runs, and firewalls on the way',
  tls: 'set otlp.insecure: true for a receiver in plain text, or otlp.tls.ca_file to the authority of its certificate',
} as const
