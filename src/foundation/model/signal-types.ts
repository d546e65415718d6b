import type { Signal } from './signal.ts'

export interface SignalType {
  readonly type: string
  readonly signals: readonly Signal[]
  /** Describes such items, without a full stop. */
  readonly means: string
}

function calls<const T extends string>(type: T, means: string) {
  return { type, signals: ['traces', 'metrics'], means } as const
}

/** Types of collected items: the label `signal_type` of `svc_*_collected_total`. */
export const signalTypes = [
  calls('http', 'HTTP requests'),
  calls('grpc', 'gRPC calls'),
  calls('sql', 'PostgreSQL and MySQL queries'),
  calls('redis', 'Redis commands'),
  calls('memcached', 'memcached commands'),
  calls('mongodb', 'MongoDB commands'),
  calls('kafka', 'Kafka messages'),
  calls('amqp', 'RabbitMQ messages'),
  calls('mqtt', 'MQTT messages'),
  calls('nats', 'NATS messages'),
  calls('dns', 'DNS lookups'),
  {
    type: 'overflow',
    signals: ['metrics'],
    means: 'calls to several systems, combined after the limit on series',
  },
  { type: 'internal', signals: ['traces'], means: 'work of svc itself (`self_telemetry.tracing`)' },
  { type: 'network', signals: ['metrics'], means: 'connections and flows' },
  { type: 'service_graph', signals: ['metrics'], means: 'calls between services' },
  { type: 'syscalls', signals: ['metrics'], means: 'system calls' },
  { type: 'process', signals: ['metrics', 'logs'], means: 'process starts and ends' },
  { type: 'host', signals: ['metrics'], means: 'host metrics (`agent.nodeexporter.otlp`)' },
  { type: 'gpu', signals: ['metrics'], means: 'GPUs' },
  { type: 'scraped', signals: ['metrics'], means: 'scraped targets (`collectors.prometheus`)' },
  { type: 'docker', signals: ['logs'], means: 'Docker containers' },
  { type: 'podman', signals: ['logs'], means: 'Podman containers' },
  { type: 'cri', signals: ['logs'], means: 'Kubernetes containers (CRI)' },
  { type: 'files', signals: ['logs'], means: 'log files of `agent.logs.paths`' },
  { type: 'journal', signals: ['logs'], means: 'the systemd journal' },
  { type: 'cpu', signals: ['profiles'], means: 'CPU time' },
  { type: 'off_cpu', signals: ['profiles'], means: 'time spent waiting' },
  { type: 'memory', signals: ['profiles'], means: 'allocated memory' },
  {
    type: 'unknown',
    signals: ['traces', 'metrics'],
    means: 'requests that were counted but could not be decoded',
  },
] as const satisfies readonly SignalType[]

export type SignalTypeName = (typeof signalTypes)[number]['type']
