import { hostname } from 'node:os'
import { list } from '../foundation/schema/collections.ts'
import {
  boolean,
  certificatesFile,
  choice,
  duration,
  integer,
  keyFile,
  listenAddress,
  number,
  size,
  someText,
  text,
} from '../foundation/schema/kinds.ts'
import { branch, type Infer, key } from '../foundation/schema/tree.ts'
import { agent, resource } from './schema-agent.ts'
import { backoff, otlp, queues } from './schema-export.ts'
import { limits } from './schema-limits.ts'
import { pipeline } from './schema-pipeline.ts'
import { cloud, collectors, discovery } from './schema-scrape.ts'

const Mi = 1024 * 1024
const urlPath = text({
  expects: 'a path that begins with "/" and has no "?" or "#"',
  pattern: /^\/[!"$->@-~]*$/,
})

/** A valid token after `Bearer ` in an `Authorization` header (RFC 6750 allows less, but servers do not check). */
const token = text({ expects: 'a token: printable ASCII without spaces', pattern: /^[!-~]*$/ })
const someToken = text({ expects: 'a token: printable ASCII without spaces', pattern: /^[!-~]+$/ })

/** As a browser sends it in `Origin` (RFC 6454, section 6.2): no path, and no default port. */
const origin = text({
  expects: 'an origin such as "https://ops.example.com", or "*"',
  pattern: /^(\*|https?:\/\/[^/?#@\s]+)$/,
  valid: origin => origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin),
  hint: ({ text }) =>
    /^https?:\/\//i.test(text) && URL.canParse(text) ? `"${new URL(text).origin}"` : undefined,
})

/** As in a `Host` header (RFC 9110, section 7.2), for any port. */
const hostName = text({
  expects: 'a host name without a port, such as "svc.example.com"',
  pattern: /^[a-zA-Z0-9_](?:[a-zA-Z0-9_.-]{0,251}[a-zA-Z0-9_.])?$/,
})

/** Linux allows 108 bytes including the final zero (unix(7)). */
const socketPath = text({
  expects: 'an absolute path of at most 107 bytes, or empty',
  valid: path => path === '' || (path.startsWith('/') && Buffer.byteLength(path) <= 107),
})

const selfTelemetry = branch('Management API and the agent’s own telemetry.', {
  enabled: key(boolean, true, 'Serves the management API.', { restart: true }),
  listen: key(listenAddress, ':19090', 'Address of the management API; port 0 for any free port.', {
    restart: true,
  }),
  path: key(urlPath, '/metrics', 'Path of the agent’s own metrics.', { restart: true }),
  prometheus_namespace: key(
    text({
      expects: 'a valid metric name prefix, such as "svc"',
      pattern: /^[a-zA-Z_][a-zA-Z0-9_]*$/,
    }),
    'svc',
    'Prefix of the names of the agent’s own metrics.',
    { restart: true },
  ),
  debug: key(boolean, false, 'Serves `/debug/*`; so does `log_level: debug`.'),
  auth: branch('Bearer tokens of the management API.', {
    enabled: key(boolean, false, 'Requires a token on all paths except health and readiness.'),
    bearer_token: key(token, '', 'Token that clients must send.', { secret: true }),
    bearer_tokens: key(list(someToken), [], 'Additional tokens, for rotation without downtime.', {
      secret: true,
    }),
    exempt: key(
      list(urlPath),
      [],
      'Other paths that need no token, such as `/metrics`; not `/admin/` and `/debug/`.',
    ),
  }),
  admin: branch('Requests that change or reveal a lot.', {
    allow_remote: key(
      boolean,
      false,
      'Allows other hosts to read and do everything although no token is required.',
    ),
  }),
  allowed_hosts: key(
    list(hostName),
    [],
    'Additional host names (`Host` of a request) accepted by the API and by the host metrics of `agent.nodeexporter`, besides addresses, `localhost` and the names of this host. Others are rejected, because a web page could point its own name here.',
  ),
  rate_limit: branch('Rate limit for requests.', {
    enabled: key(boolean, false, 'Limits requests per client: an address, or a user of this host.'),
    requests_per_second: key(integer({ min: 1, max: 1_000_000 }), 100, 'Requests per second per client.'),
  }),
  cors: branch('Requests from web pages of other origins.', {
    enabled: key(boolean, false, 'Allows these requests.'),
    allowed_origins: key(
      list(origin),
      [],
      'Allowed origins, such as `https://ops.example.com`; `*` for all.',
    ),
  }),
  tls: branch('TLS of the management API.', {
    enabled: key(boolean, false, 'Serves over TLS.', { restart: true }),
    cert_file: key(certificatesFile, '', 'PEM file of the certificate; reloaded when it changes.', {
      content: true,
    }),
    key_file: key(keyFile, '', 'PEM file of the private key; reloaded when it changes.', {
      content: true,
    }),
    client_ca_file: key(
      certificatesFile,
      '',
      'PEM file of the CAs of client certificates; reloaded when it changes. Empty to require none.',
      { content: true },
    ),
  }),
  tracing: branch('Spans of the agent’s own work.', {
    enabled: key(boolean, false, 'Traces internal operations.'),
    sample_rate: key(number({ min: 0, max: 1 }), 0.01, 'Fraction of operations to trace.'),
  }),
  admin_socket: key(
    socketPath,
    '/run/svc/svc.sock',
    'Unix socket for commands on the same host, without a token; empty for none.',
    { restart: true },
  ),
  ui: branch('Live page at `/ui`, and commands that query a running agent.', {
    enabled: key(boolean, true, 'Serves the page and keeps its data.', { restart: true }),
    window: key(
      duration({ min: 60_000, max: 86_400_000 }),
      900_000,
      'Time range of the page, as far as `max_memory` allows.',
      { restart: true },
    ),
    max_memory: key(
      size({ min: Mi, max: 1024 * Mi }),
      24 * Mi,
      'Memory for its data; less if the memory limit of svc is below 512 MiB.',
      {
        restart: true,
      },
    ),
    redact: key(
      boolean,
      true,
      'Redacts personal data and secrets on the page, even if `pipeline.pii_redaction` is off.',
    ),
  }),
})

/** Keys that may also be under `svc:`. */
const general = [
  'mode',
  'service_name',
  'instance_id',
  'log_level',
  'log_format',
  'shutdown_timeout',
] as const

/**
 * All keys, with type, range, default and description. The source of types, messages, environment variables, redaction,
 * the JSON Schema and the reference page.
 */
export const schema = branch(
  'Configuration of svc.',
  {
    mode: key(
      choice(['agent', 'collector']),
      'agent',
      '`agent` observes its host; `collector` only scrapes targets and forwards.',
      { restart: true },
    ),
    service_name: key(
      someText,
      'svc',
      'Service name of the agent in its own telemetry; never used for observed services.',
      { restart: true },
    ),
    instance_id: key(someText, hostname() || 'unknown', 'Instance name of the agent in its own telemetry.', {
      defaultText: '<hostname>',
      restart: true,
    }),
    log_level: key(choice(['debug', 'info', 'warn', 'error']), 'info', 'Minimum severity of log records.'),
    log_format: key(choice(['json', 'text']), 'json', 'Log format; text on a terminal unless this is set.'),
    shutdown_timeout: key(duration(), 30_000, 'Maximum time from the signal to the end of the process.'),
    limits,
    resource,
    otlp,
    agent,
    cloud,
    discovery,
    queues,
    backoff,
    pipeline,
    collectors,
    self_telemetry: selfTelemetry,
  },
  { spellings: { selfTelemetry: 'self_telemetry' }, groups: { svc: general } },
)

/** The whole configuration: durations in milliseconds, sizes in bytes, every default filled in. */
export type Config = Infer<typeof schema>
