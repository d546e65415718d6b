import { hostname } from 'node:os'
import { list } from '../schema/collections.ts'
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
} from '../schema/kinds.ts'
import { branch, type Infer, key } from '../schema/tree.ts'
import { agent, resource } from './schema-agent.ts'
import { backoff, otlp, queues } from './schema-export.ts'
import { limits } from './schema-limits.ts'
import { pipeline } from './schema-pipeline.ts'
import { cloud, collectors, discovery } from './schema-scrape.ts'

const Mi = 1024 * 1024
const urlPath = text({
  expects: 'a path that begins with "/" and has no "?" and no "#"',
  pattern: /^\/[!"$->@-~]*$/,
})

/** What an `Authorization` header can carry behind `Bearer ` (RFC 6750 allows less, and nobody checks). */
const token = text({ expects: 'a token: printable ASCII without spaces', pattern: /^[!-~]*$/ })
const someToken = text({ expects: 'a token: printable ASCII without spaces', pattern: /^[!-~]+$/ })

/** As a browser sends it in the header `Origin` (RFC 6454, section 6.2): no path, and no port that is the usual one. */
const origin = text({
  expects: 'an origin such as "https://ops.example.com", or "*"',
  pattern: /^(\*|https?:\/\/[^/?#@\s]+)$/,
  valid: origin => origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin),
  hint: ({ text }) =>
    /^https?:\/\//i.test(text) && URL.canParse(text) ? `"${new URL(text).origin}"` : undefined,
})

/** As it stands in a `Host` header (RFC 9110, section 7.2), for any port. */
const hostName = text({
  expects: 'a host name without a port, such as "svc.example.com"',
  pattern: /^[a-zA-Z0-9_](?:[a-zA-Z0-9_.-]{0,251}[a-zA-Z0-9_.])?$/,
})

/** Linux takes 108 bytes, of which the last is a zero (unix(7)). */
const socketPath = text({
  expects: 'an absolute path of at most 107 bytes, or nothing',
  valid: path => path === '' || (path.startsWith('/') && Buffer.byteLength(path) <= 107),
})

const selfTelemetry = branch('The management API and the agent’s own telemetry.', {
  enabled: key(boolean, true, 'Serves the management API.', { restart: true }),
  listen: key(listenAddress, ':19090', 'Address of the management API; port 0 takes any free port.', {
    restart: true,
  }),
  path: key(urlPath, '/metrics', 'Path of the agent’s own metrics.', { restart: true }),
  prometheus_namespace: key(
    text({
      expects: 'a prefix that a metric name can have, such as "svc"',
      pattern: /^[a-zA-Z_][a-zA-Z0-9_]*$/,
    }),
    'svc',
    'First word of the names of the agent’s own metrics.',
    { restart: true },
  ),
  debug: key(boolean, false, 'Serves `/debug/*`; `log_level: debug` does as well.'),
  auth: branch('Bearer tokens of the management API.', {
    enabled: key(boolean, false, 'Requires a token everywhere except at the health and readiness paths.'),
    bearer_token: key(token, '', 'Token that clients must send.', { secret: true }),
    bearer_tokens: key(list(someToken), [], 'More tokens, for a change without a gap.', { secret: true }),
    exempt: key(
      list(urlPath),
      [],
      'Paths that need no token either, such as `/metrics`; none below `/admin/` and `/debug/`.',
    ),
  }),
  admin: branch('Requests that change or reveal much.', {
    allow_remote: key(boolean, false, 'Lets other hosts read and do everything though no token is required.'),
  }),
  allowed_hosts: key(
    list(hostName),
    [],
    'More names by which the API and the host metrics of `agent.nodeexporter` may be asked (the `Host` of a request), beside addresses, `localhost` and the names of this host. Others are refused, for a web page may have its own name point here.',
  ),
  rate_limit: branch('Bound on requests.', {
    enabled: key(boolean, false, 'Bounds requests per client: an address, or a user of this host.'),
    requests_per_second: key(integer({ min: 1, max: 1_000_000 }), 100, 'Requests per second and client.'),
  }),
  cors: branch('Requests from web pages of other origins.', {
    enabled: key(boolean, false, 'Allows them.'),
    allowed_origins: key(list(origin), [], 'Origins, such as `https://ops.example.com`; `*` for all.'),
  }),
  tls: branch('TLS of the management API.', {
    enabled: key(boolean, false, 'Serves over TLS.', { restart: true }),
    cert_file: key(certificatesFile, '', 'PEM file of the certificate, taken up anew when it changes.', {
      content: true,
    }),
    key_file: key(keyFile, '', 'PEM file of the private key, taken up anew when it changes.', {
      content: true,
    }),
    client_ca_file: key(
      certificatesFile,
      '',
      'PEM file of the authorities that clients’ certificates must be from, taken up anew when it changes; empty to ask for none.',
      { content: true },
    ),
  }),
  tracing: branch('Spans of the agent’s own work.', {
    enabled: key(boolean, false, 'Traces internal operations.'),
    sample_rate: key(number({ min: 0, max: 1 }), 0.01, 'Part of the operations that is traced.'),
  }),
  admin_socket: key(
    socketPath,
    '/run/svc/svc.sock',
    'Unix socket on which commands of the same host reach the agent, without a token; empty for none.',
    { restart: true },
  ),
  ui: branch('The live page at `/ui`, and the commands that look at a running agent.', {
    enabled: key(boolean, true, 'Serves the page and keeps what it shows.', { restart: true }),
    window: key(
      duration({ min: 60_000, max: 86_400_000 }),
      900_000,
      'Time that the page looks back, as far as `max_memory` lasts.',
      { restart: true },
    ),
    max_memory: key(
      size({ min: Mi, max: 1024 * Mi }),
      24 * Mi,
      'Memory for what it shows; less where svc itself may have less than 512 MiB.',
      {
        restart: true,
      },
    ),
    redact: key(
      boolean,
      true,
      'Redacts personal data and secrets in what is shown, also where `pipeline.pii_redaction` is off.',
    ),
  }),
})

/** Keys that may also stand under `svc:`. */
const general = [
  'mode',
  'service_name',
  'instance_id',
  'log_level',
  'log_format',
  'shutdown_timeout',
] as const

/**
 * Every key there is, with type, range, default and meaning. Types, messages, environment variables, redaction, the
 * JSON Schema and the reference page all come from here.
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
      'Name of the agent in its own telemetry; never given to what it observes.',
      { restart: true },
    ),
    instance_id: key(someText, hostname() || 'unknown', 'Name of this instance in its own telemetry.', {
      defaultText: '<hostname>',
      restart: true,
    }),
    log_level: key(choice(['debug', 'info', 'warn', 'error']), 'info', 'Least severity that is logged.'),
    log_format: key(
      choice(['json', 'text']),
      'json',
      'Form of the log; on a terminal it is text unless this is set.',
    ),
    shutdown_timeout: key(duration(), 30_000, 'Longest time from the signal to the end of the process.'),
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
