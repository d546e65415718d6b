import { map } from '../schema/collections.ts'
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
} from '../schema/kinds.ts'
import { branch, type Keys, key } from '../schema/tree.ts'

const day = 86_400_000
const Ki = 1024
const Mi = 1024 * Ki
const Gi = 1024 * Mi

/** Why a text is no name of a header that a user may set. gRPC takes fewer than HTTP (gRPC over HTTP/2, Requests). */
function headerFault(name: string): string {
  if (!/^[._0-9A-Za-z-]{1,256}$/.test(name)) return 'not a name that a gRPC header can have'
  return /^(grpc-|te$|host$|user-agent$|content-type$|content-length$|connection$|transfer-encoding$)/i.test(
    name,
  )
    ? 'svc sets this header itself'
    : ''
}

/** Headers of requests. Their values are secret as a rule. */
export const headers = map(text({ expects: 'printable ASCII text on one line', pattern: /^[\x20-\x7e]*$/ }), {
  fault: headerFault,
})

const tls = branch('TLS towards the receiver.', {
  ca_file: key(
    certificatesFile,
    '',
    'PEM file of the authorities that are trusted instead of the built-in ones, taken up anew when it changes.',
    { content: true },
  ),
  cert_file: key(
    certificatesFile,
    '',
    'PEM file of the certificate that svc shows to the receiver, taken up anew when it changes.',
    { content: true },
  ),
  key_file: key(keyFile, '', 'PEM file of the private key of `cert_file`, taken up anew when it changes.', {
    content: true,
  }),
  server_name: key(
    text(),
    '',
    'Name that the receiver’s certificate must carry, when it differs from the endpoint’s.',
  ),
  insecure_skip_verify: key(
    boolean,
    false,
    'Accepts any certificate: the connection is open to whoever intercepts it.',
  ),
})

const transport = {
  protocol: key(
    choice(['grpc', 'http/protobuf', 'http/json']),
    'grpc',
    'Form of OTLP that the receiver speaks.',
  ),
  compression: key(choice(['gzip', 'zstd', 'none']), 'gzip', 'Compression of request bodies.'),
  timeout: key(duration(), 10_000, 'Time that one request may take before it is given up and tried again.'),
  insecure: key(
    boolean,
    false,
    'Speaks without TLS. A scheme in the endpoint (`http://`, `https://`) decides instead of this key.',
  ),
  headers: key(headers, {}, 'Headers that every request carries, such as `Authorization`.', { secret: true }),
  max_message_size: key(
    size({ min: 64 * Ki, max: 64 * Mi }),
    4 * Mi,
    'Largest request before compression; a larger batch is split.',
  ),
  concurrency: key(integer({ min: 1, max: 64 }), 4, 'Requests that may be in flight for one signal.'),
  tls,
} as const

function signal<const K extends Keys = Record<never, never>>(name: string, more: K = {} as K) {
  return branch(`What differs for ${name}; a key that is not set here takes its value from \`otlp\`.`, {
    enabled: key(boolean, true, `Exports ${name}.`),
    endpoint: key(
      endpoint,
      '',
      `Receiver of ${name}; empty for that of \`otlp.endpoint\`. A URL is used over HTTP as it is written.`,
    ),
    ...transport,
    ...more,
  })
}

export const otlp = branch('Export over OTLP.', {
  endpoint: key(
    endpoint,
    '',
    'Receiver as host:port or URL. While it is empty nothing is exported and data stays on this host.',
  ),
  ...transport,
  traces: signal('traces'),
  metrics: signal('metrics', {
    temporality: key(
      choice(['cumulative', 'delta']),
      'cumulative',
      'Whether sums and histograms tell the total since their start, or what came since the last time.',
    ),
    histograms: key(
      choice(['explicit', 'exponential']),
      'explicit',
      'Buckets of the durations that svc measures: the bounds of the conventions, or exponential ones.',
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
      'Bytes that the queue may hold, requests in flight included; beyond it the oldest batch is dropped and counted.',
    ),
    batch_size: key(
      integer({ min: 1, max: 1_000_000 }),
      batchSize,
      `Most ${name} in one request; \`pipeline.export.batch.size\` stands in where this is not set.`,
    ),
    max_age: key(
      duration({ min: 0, max: 365 * day }),
      maxAgeMs,
      'Age at which a batch that could not be delivered is dropped; 0 for no limit. Bounds the queue in memory alone.',
    ),
  })
}

export const queues = branch('Memory queues between the pipeline and the exporter, one per signal.', {
  traces: queue('spans', 32 * Mi, 8192, day / 4),
  metrics: queue('data points', 32 * Mi, 8192, day / 24),
  logs: queue('log records', 32 * Mi, 8192, day),
  profiles: queue('profile samples', 16 * Mi, 64, day / 24),
})

export const backoff = branch('Waiting between attempts to deliver a batch.', {
  initial: key(duration({ min: 10 }), 500, 'Longest wait before the second attempt.'),
  max: key(duration({ min: 10 }), 30_000, 'Longest wait between two attempts.'),
  multiplier: key(number({ min: 1, max: 10 }), 2, 'Factor by which the wait grows with each attempt.'),
  jitter: key(
    number({ min: 0, max: 1 }),
    0.2,
    'Part of the wait that is left to chance, so that agents do not retry in step.',
  ),
  max_elapsed: key(
    duration({ min: 0, max: 365 * day }),
    0,
    'Time after which a batch is given up and counted; 0 leaves it to `max_age` of its queue.',
  ),
})

export const exporting = branch('From the pipeline to the receiver.', {
  otlp: branch('Another place for two keys of `otlp`; what is set here wins.', {
    endpoint: key(endpoint, '', 'As `otlp.endpoint`.'),
    insecure: key(boolean, false, 'As `otlp.insecure`.'),
  }),
  batch: branch('How items are gathered into requests.', {
    size: key(
      integer({ min: 1, max: 1_000_000 }),
      8192,
      'Most items in one request; `queues.<signal>.batch_size` wins where it is set.',
    ),
    timeout: key(duration(), 1000, 'Longest time that an item waits for others to fill its request.'),
  }),
  queue: branch('Queue on disk, which survives a restart and a crash.', {
    enabled: key(
      boolean,
      true,
      'Keeps what is not delivered on disk. Where no endpoint is set, or the directory cannot be written, memory serves.',
      { restart: true },
    ),
    directory: key(path, '/var/lib/svc/queue', 'Directory of the queue.', { restart: true }),
    max_size_bytes: key(
      size({ min: Mi, max: 1024 * Gi, plain: true }),
      500_000_000,
      'Bytes on disk for all signals together.',
    ),
    fsync: key(
      duration({ min: 0 }),
      200,
      'Longest time until written data is forced to the disk; 0 for every batch.',
    ),
    when_full: key(choice(['drop_oldest']), 'drop_oldest', 'What gives way when the queue is full.'),
  }),
  on_auth_error: key(
    choice(['park', 'drop']),
    'park',
    'When the receiver refuses the credentials: `park` keeps queueing and tries now and then, `drop` drops and counts.',
  ),
})
