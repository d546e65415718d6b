import { map } from '../foundation/schema/collections.ts'
import {
  boolean,
  certificatesFile,
  choice,
  duration,
  endpoint,
  integer,
  keyFile,
  number,
  path,
  size,
  text,
} from '../foundation/schema/kinds.ts'
import { branch, type Keys, key } from '../foundation/schema/tree.ts'

const day = 86_400_000
const Ki = 1024
const Mi = 1024 * Ki
const Gi = 1024 * Mi

/** Why a header name is invalid or reserved. gRPC allows fewer than HTTP (gRPC over HTTP/2, Requests). */
function headerFault(name: string): string {
  if (!/^[._0-9A-Za-z-]{1,256}$/.test(name)) return 'not a valid gRPC header name'
  return /^(grpc-|te$|host$|user-agent$|content-type$|content-length$|connection$|transfer-encoding$)/i.test(
    name,
  )
    ? 'svc sets this header itself; delete it'
    : ''
}

/** Request headers. Their values are usually secret. */
const headers = map(text({ expects: 'printable ASCII text on one line', pattern: /^[\x20-\x7e]*$/ }), {
  fault: headerFault,
})

const tls = branch('TLS of the connection to the receiver.', {
  ca_file: key(
    certificatesFile,
    '',
    'PEM file of CAs to trust instead of the built-in ones; reloaded when it changes.',
    { content: true },
  ),
  cert_file: key(certificatesFile, '', 'PEM file of the client certificate; reloaded when it changes.', {
    content: true,
  }),
  key_file: key(keyFile, '', 'PEM file of the private key of `cert_file`; reloaded when it changes.', {
    content: true,
  }),
  server_name: key(
    text(),
    '',
    'Name expected in the receiver’s certificate, if it differs from the endpoint’s.',
  ),
  insecure_skip_verify: key(
    boolean,
    false,
    'Accepts any certificate, which allows others to intercept the connection.',
  ),
})

const transport = {
  protocol: key(choice(['grpc', 'http/protobuf', 'http/json']), 'grpc', 'OTLP protocol of the receiver.'),
  compression: key(choice(['gzip', 'zstd', 'none']), 'gzip', 'Compression of request bodies.'),
  timeout: key(duration(), 10_000, 'Timeout of one request, which is then retried.'),
  insecure: key(
    boolean,
    false,
    'Connects without TLS. A scheme in the endpoint (`http://`, `https://`) takes precedence.',
  ),
  headers: key(headers, {}, 'Headers added to every request, such as `Authorization`.', { secret: true }),
  max_message_size: key(
    size({ min: 64 * Ki, max: 64 * Mi }),
    4 * Mi,
    'Maximum request size before compression; larger batches are split.',
  ),
  concurrency: key(integer({ min: 1, max: 64 }), 4, 'Maximum requests in flight per signal.'),
  tls,
} as const

function signal<const K extends Keys = Record<never, never>>(name: string, more: K = {} as K) {
  return branch(`Overrides for ${name}; keys that are not set here take their value from \`otlp\`.`, {
    enabled: key(boolean, true, `Exports ${name}.`),
    endpoint: key(
      endpoint,
      '',
      `Receiver of ${name}; empty for \`otlp.endpoint\`. Over HTTP a URL is used unchanged.`,
    ),
    ...transport,
    ...more,
  })
}

export const otlp = branch('Export over OTLP.', {
  endpoint: key(
    endpoint,
    '',
    'Receiver as host:port or URL. If empty, nothing is exported and data stays on this host.',
  ),
  ...transport,
  traces: signal('traces'),
  metrics: signal('metrics', {
    temporality: key(
      choice(['cumulative', 'delta']),
      'cumulative',
      'Whether sums and histograms report the total since their start or the change since the last export.',
    ),
    histograms: key(
      choice(['explicit', 'exponential']),
      'explicit',
      'Histogram buckets of durations measured by svc: the bounds of the semantic conventions, or exponential ones.',
      { restart: true },
    ),
  }),
  logs: signal('logs'),
  profiles: signal('profiles'),
})

function queue(name: string, memoryLimit: number, batchSize: number, maxAgeMs: number) {
  return branch(`Memory queue of ${name}.`, {
    mem_limit: key(
      size({ min: Mi, max: 16 * Gi }),
      memoryLimit,
      'Maximum size of the queue in bytes, including requests in flight; above it the oldest batch is dropped and counted.',
    ),
    batch_size: key(
      integer({ min: 1, max: 1_000_000 }),
      batchSize,
      `Maximum ${name} in one request; \`pipeline.export.batch.size\` applies if this is not set.`,
    ),
    max_age: key(
      duration({ min: 0, max: 365 * day }),
      maxAgeMs,
      'Age at which an undelivered batch is dropped; 0 for no limit. Applies only to the queue in memory.',
    ),
  })
}

export const queues = branch('Memory queues between the pipeline and the exporter, one per signal.', {
  traces: queue('spans', 32 * Mi, 8192, day / 4),
  metrics: queue('data points', 32 * Mi, 8192, day / 24),
  logs: queue('log records', 32 * Mi, 8192, day),
  profiles: queue('profile samples', 16 * Mi, 64, day / 24),
})

export const backoff = branch('Delays between attempts to deliver a batch.', {
  initial: key(duration({ min: 10 }), 500, 'Maximum delay before the second attempt.'),
  max: key(duration({ min: 10 }), 30_000, 'Maximum delay between attempts.'),
  multiplier: key(number({ min: 1, max: 10 }), 2, 'Factor by which the delay grows with each attempt.'),
  jitter: key(
    number({ min: 0, max: 1 }),
    0.2,
    'Random fraction of the delay, so that agents do not retry at the same time.',
  ),
  max_elapsed: key(
    duration({ min: 0, max: 365 * day }),
    0,
    'Time after which a batch is dropped and counted; 0 to use only `max_age` of its queue.',
  ),
})

export const exporting = branch('Export from the pipeline to the receiver.', {
  otlp: branch('Aliases of two keys of `otlp`; values set here take precedence.', {
    endpoint: key(endpoint, '', 'Same as `otlp.endpoint`.'),
    insecure: key(boolean, false, 'Same as `otlp.insecure`.'),
  }),
  batch: branch('Batching of items into requests.', {
    size: key(
      integer({ min: 1, max: 1_000_000 }),
      8192,
      'Maximum items in one request; `queues.<signal>.batch_size` takes precedence if set.',
    ),
    timeout: key(duration(), 1000, 'Maximum time that an item waits for a full batch.'),
  }),
  queue: branch('Queue on disk, which survives restarts and crashes.', {
    enabled: key(
      boolean,
      true,
      'Keeps undelivered data on disk. If no endpoint is set or the directory is not writable, the queue stays in memory.',
      { restart: true },
    ),
    directory: key(path, '/var/lib/svc/queue', 'Directory of the queue.', { restart: true }),
    max_size_bytes: key(
      size({ min: Mi, max: 1024 * Gi, plain: true }),
      500_000_000,
      'Maximum size on disk in bytes, for all signals together.',
    ),
    fsync: key(
      duration({ min: 0 }),
      200,
      'Maximum time until written data is synced to disk; 0 to sync every batch.',
    ),
    when_full: key(choice(['drop_oldest']), 'drop_oldest', 'Data to drop when the queue is full.'),
  }),
  on_auth_error: key(
    choice(['park', 'drop']),
    'park',
    'When the receiver rejects the credentials: `park` keeps queueing and retries occasionally, `drop` drops and counts the data.',
  ),
})
