// What the gauntlet sends against the agent: a program of `programs` each, run as a user without rights.

export interface Attack {
  /** Its program, by Python. */
  readonly name: string
  /** One of two users, who are strangers to each other. */
  readonly user: 65534 | 65533
  /** Seconds that it gets where each comes alone; left out: 10. */
  readonly seconds?: number
}

export const attacks: readonly Attack[] = [
  { name: 'many-attributes', user: 65534 },
  { name: 'long-function-names', user: 65534 },
  { name: 'demangling', user: 65533 },
  { name: 'http2-streams', user: 65534 },
  { name: 'pending-requests', user: 65533 },
  { name: 'library-copies', user: 65534, seconds: 16 },
  { name: 'short-processes', user: 65533 },
  { name: 'request-bursts', user: 65534 },
  { name: 'hostile-logs', user: 65533 },
  { name: 'perf-maps', user: 65534, seconds: 20 },
  { name: 'many-mappings', user: 65533 },
  { name: 'hostile-names', user: 65534 },
  { name: 'many-names', user: 65533 },
  { name: 'bad-http1', user: 65534 },
  { name: 'bad-protocols', user: 65533 },
  { name: 'idle-connections', user: 65534 },
  { name: 'api-abuse', user: 65533 },
  { name: 'many-processes', user: 65534 },
  { name: 'many-services', user: 65533 },
  { name: 'many-threads', user: 65534 },
  { name: 'many-listeners', user: 65533 },
  { name: 'changing-programs', user: 65534 },
  { name: 'bad-programs', user: 65533 },
  { name: 'scribbled-runtimes', user: 65534 },
  { name: 'bad-http2', user: 65533 },
  { name: 'large-statements', user: 65534 },
  { name: 'dns-names', user: 65533 },
  { name: 'namespaces', user: 65534 },
  { name: 'http-tricks', user: 65534 },
  { name: 'grpc-metadata', user: 65533 },
  { name: 'passed-sockets', user: 65534 },
  { name: 'tls-records', user: 65533 },
  { name: 'huge-arguments', user: 65534 },
  { name: 'changing-files', user: 65533 },
  { name: 'api-lies', user: 65534 },
  { name: 'hanging-files', user: 65533 },
  { name: 'short-callers', user: 65534, seconds: 20 },
  { name: 'swapped-pages', user: 65534, seconds: 15 },
  { name: 'huge-mounts', user: 65533, seconds: 12 },
]
