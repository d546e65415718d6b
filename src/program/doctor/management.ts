import { createPrivateKey, X509Certificate } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import type { Config } from '../../config/index.ts'
import { parseListenAddress } from '../../foundation/lib/listen-address.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { capabilityHints, type Finding } from '../../kernel/need.ts'
import { findAgent } from '../client/agent-client.ts'
import { check } from './check.ts'
import { tryListen } from './listening.ts'

type Settings = Config['self_telemetry']

const noStart = 'the agent: it does not start'
const another = 'self_telemetry.listen: 127.0.0.1:19091'

export const address = check({
  name: 'address',
  group: 'management',
  summary: 'The management API can listen on its address; a socket is bound there briefly',
  impact: noStart,
  faults: {
    taken: {
      state: 'missing',
      what: 'another process is listening there; a running svc is not a problem',
      hints: { any: 'stop the process that uses the port: ss -ltnp', config: another },
    },
    privileged: {
      state: 'missing',
      what: 'ports below 1024 need root',
      hints: {
        ...capabilityHints('NET_BIND_SERVICE'),
        sysctl: 'sysctl -w net.ipv4.ip_unprivileged_port_start=80',
        config: another,
      },
    },
    foreign: {
      state: 'missing',
      what: 'the address does not belong to this host (in a container: to the container)',
      hints: {
        config: 'self_telemetry.listen: :19090',
        container: 'docker run --network=host',
        kubernetes: 'hostNetwork: true',
      },
    },
    unusable: {
      state: 'missing',
      what: 'the host name does not resolve, or listening fails for another reason',
      hints: { config: 'self_telemetry.listen: :19090 (an address instead of a name)' },
    },
    off: {
      state: 'note',
      what: 'the management API is off: the status of the agent cannot be queried',
      hints: { config: 'self_telemetry.enabled: true' },
    },
  },
  try: async ({ loaded, timeoutMs }) => [await tryAddress(loaded.config.self_telemetry, timeoutMs)],
})

async function tryAddress(
  settings: Settings,
  timeoutMs: number,
): Promise<Finding<'taken' | 'privileged' | 'foreign' | 'unusable' | 'off'>> {
  const { enabled, listen } = settings
  if (!enabled) return { fault: 'off', detail: 'self_telemetry.enabled is false' }
  return tryListen(listen, () => answersAsSvc(settings, timeoutMs))
}

/** Only root sees which process listens; any user sees its answer. */
async function answersAsSvc({ auth, ...settings }: Settings, timeoutMs: number): Promise<boolean> {
  const noToken = { ...settings, auth: { ...auth, enabled: false }, admin_socket: '' }
  const { client } = await findAgent({ settings: noToken, env: {}, timeoutMs })
  const answer = await client?.get('/healthz', { timeoutMs, mostBytes: 1024 }).catch(() => undefined)
  return answer !== undefined && /^\{"status":"(?:ok|unhealthy)"[,}]/.test(answer.body.toString())
}

export const certificate = check({
  name: 'TLS files',
  group: 'management',
  summary: 'With TLS on, certificate and key are readable, match and are valid now',
  impact: noStart,
  faults: {
    unreadable: {
      state: 'missing',
      what: 'a file of `self_telemetry.tls` does not exist, or the user of svc may not read it',
      hints: {
        any: 'chgrp svc FILE && chmod 640 FILE, and allow x on its directories',
        systemd: `LoadCredential=tls.key:/etc/svc/tls.key, and key_file: \${CREDENTIALS_DIRECTORY}/tls.key`,
        container: 'docker run -v /etc/svc:/etc/svc:ro',
        kubernetes: 'volumes: [{name: tls, secret: {secretName: svc-tls}}], mounted at the paths in the keys',
      },
    },
    unusable: {
      state: 'missing',
      what: 'a file is not valid PEM of its kind, or the key does not match the certificate',
      hints: {
        any: 'openssl pkey -in KEY -pubout and openssl x509 -in CERTIFICATE -pubkey -noout must print the same',
      },
    },
    expired: {
      state: 'limited',
      what: 'the certificate is not valid now: clients reject it',
      impact: 'clients that check the certificate, including metric scrapes',
      hints: { any: 'renew the certificate; check the clock of this host: date -u' },
    },
    expiring: {
      state: 'note',
      what: 'the certificate expires within two weeks',
      hints: { any: 'renew the certificate' },
    },
  },
  try: ({ loaded: { config } }) => {
    const { enabled, tls } = config.self_telemetry
    return enabled && tls.enabled ? [tryCertificate(tls, Date.now())] : []
  },
})

const twoWeeksMs = 14 * 86_400_000

function tryCertificate(
  tls: Settings['tls'],
  now: number,
): Finding<'unreadable' | 'unusable' | 'expired' | 'expiring'> {
  const files: Buffer[] = []
  for (const name of ['cert_file', 'key_file', 'client_ca_file'] as const) {
    try {
      if (tls[name] !== '') files.push(readFileSync(tls[name]))
    } catch (error) {
      return { fault: 'unreadable', detail: `cannot read self_telemetry.tls.${name}: ${errorText(error)}` }
    }
  }
  const [cert, key, ca] = files
  try {
    const { validFrom, validTo } = pairOf(cert!, key!)
    if (ca !== undefined) new X509Certificate(ca)
    const ends = Date.parse(validTo)
    if (ends < now) return { fault: 'expired', detail: `${tls.cert_file} expired on ${day(ends)}` }
    const begins = Date.parse(validFrom)
    if (begins > now) return { fault: 'expired', detail: `${tls.cert_file} is valid from ${day(begins)}` }
    if (ends < now + twoWeeksMs)
      return { fault: 'expiring', detail: `${tls.cert_file} expires on ${day(ends)}` }
    return { ok: `${tls.cert_file} and its key match, valid until ${day(ends)}` }
  } catch (error) {
    return { fault: 'unusable', detail: `cannot use self_telemetry.tls: ${errorText(error)}` }
  }
}

/** The certificate, if it matches the key. Throws if either is invalid. */
function pairOf(cert: Buffer, key: Buffer): X509Certificate {
  const certificate = new X509Certificate(cert)
  if (certificate.checkPrivateKey(createPrivateKey(key))) return certificate
  throw new Error('the key does not match the certificate')
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

const bySecret = {
  config: `self_telemetry.auth.bearer_token: \${file:/etc/svc/token}, with a token from: openssl rand -hex 32`,
}

export const exposure = check({
  name: 'exposure',
  group: 'management',
  summary: 'The management API needs a token, over TLS, or is reachable only from this host',
  reads: 'secrets',
  impact: 'control over access to configuration, status and metrics',
  faults: {
    no_token: {
      state: 'missing',
      what: 'a token is required, but none is set',
      impact: noStart,
      hints: bySecret,
    },
    short_token: {
      state: 'note',
      what: 'a token is shorter than 16 characters and could be guessed',
      hints: bySecret,
    },
    open: {
      state: 'note',
      what: 'other hosts can use the API without a token; administration is limited to this host',
      hints: {
        config: 'self_telemetry.listen: 127.0.0.1:19090, or self_telemetry.auth.enabled: true',
        kubernetes: 'a NetworkPolicy that allows only the scraper',
      },
    },
    open_admin: {
      state: 'limited',
      what: 'other hosts may administer the agent without a token',
      impact: 'control over reloads, flushes and profiles of the agent',
      hints: { config: 'self_telemetry.auth.enabled: true, or self_telemetry.admin.allow_remote: false' },
    },
    plain_text: {
      state: 'note',
      what: 'tokens are sent over the network in plain text, where they can be intercepted',
      hints: { config: 'self_telemetry.tls: {enabled: true, cert_file: FILE, key_file: FILE}' },
    },
  },
  try: async ({ loaded }) => judgeExposure(loaded.config.self_telemetry),
})

const shortToken = 16

async function judgeExposure({
  enabled,
  listen,
  auth,
  admin,
  tls,
}: Settings): Promise<Finding<'no_token' | 'short_token' | 'open' | 'open_admin' | 'plain_text'>[]> {
  if (!enabled) return []
  const tokens = [auth.bearer_token, ...auth.bearer_tokens].filter(token => token !== '')
  if (auth.enabled && tokens.length === 0)
    return [{ fault: 'no_token', detail: 'self_telemetry.auth.enabled is true, but no token is set' }]
  const found: Finding<'short_token' | 'plain_text'>[] = []
  if (auth.enabled && tokens.some(token => token.length < shortToken))
    found.push({ fault: 'short_token', detail: `a token has less than ${shortToken} characters` })
  if (await isLoopback(listen)) return [...found, { ok: `${listen} is reachable only from this host` }]
  if (!auth.enabled)
    return [
      admin.allow_remote
        ? { fault: 'open_admin', detail: `${listen} lets other hosts administer the agent without a token` }
        : { fault: 'open', detail: `${listen} answers other hosts without a token` },
    ]
  if (!tls.enabled) found.push({ fault: 'plain_text', detail: `tokens are sent to ${listen} in plain text` })
  return found.length > 0 ? found : [{ ok: 'a token over TLS is required' }]
}

async function isLoopback(listen: string): Promise<boolean> {
  const { host } = parseListenAddress(listen) ?? {}
  if (host === undefined) return false
  try {
    const { address: resolved } = await lookup(host)
    return resolved === '::1' || resolved.startsWith('127.')
  } catch {
    return false // the check of the address reports the wrong name
  }
}
