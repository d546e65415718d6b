// The duration histograms that protocols fill, by the conventions 1.44. One object for each metric, because series are
// found by it.

import type { DurationDesc } from '../../../foundation/model/call.ts'

export interface ProtocolDuration extends DurationDesc {
  /** All dimensions that a call may have. */
  readonly dimensions: readonly string[]
}

/** Bounds that the conventions advise for durations, in seconds. */
export const bounds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

/** Bounds in which the kernel counts: those of every histogram here. */
export const kernelBounds: readonly number[] = [0.001, ...bounds]

export const httpServer: ProtocolDuration = {
  name: 'http.server.request.duration',
  description: 'Duration of HTTP server requests.',
  bounds,
  dimensions: [
    'http.request.method',
    'url.scheme',
    'http.route',
    'http.response.status_code',
    'error.type',
    'network.protocol.version',
  ],
}

export const httpClient: ProtocolDuration = {
  name: 'http.client.request.duration',
  description: 'Duration of HTTP client requests.',
  bounds,
  dimensions: [
    'http.request.method',
    'server.address',
    'server.port',
    'http.response.status_code',
    'error.type',
    'network.protocol.version',
  ],
}

export const rpcServer: ProtocolDuration = {
  name: 'rpc.server.call.duration',
  description: 'Duration of incoming remote procedure calls.',
  bounds,
  dimensions: ['rpc.system.name', 'rpc.method', 'rpc.response.status_code', 'error.type'],
}

export const rpcClient: ProtocolDuration = {
  name: 'rpc.client.call.duration',
  description: 'Duration of outgoing remote procedure calls.',
  bounds,
  dimensions: [
    'rpc.system.name',
    'rpc.method',
    'server.address',
    'server.port',
    'rpc.response.status_code',
    'error.type',
  ],
}

export const dbClient: ProtocolDuration = {
  name: 'db.client.operation.duration',
  description: 'Duration of database client operations.',
  bounds: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
  dimensions: [
    'db.system.name',
    'server.address',
    'server.port',
    'db.namespace',
    'db.operation.name',
    'db.collection.name',
    'db.stored_procedure.name',
    'db.query.summary',
    'db.response.status_code',
    'error.type',
  ],
}

const messagingDimensions = [
  'messaging.system',
  'messaging.operation.name',
  'messaging.operation.type',
  'messaging.destination.name',
  'messaging.destination.template',
  'messaging.consumer.group.name',
  'server.address',
  'server.port',
  'error.type',
]

export const messagingClient: ProtocolDuration = {
  name: 'messaging.client.operation.duration',
  description: 'Duration of messaging operations that a client started.',
  bounds,
  dimensions: messagingDimensions,
}

export const messagingProcess: ProtocolDuration = {
  name: 'messaging.process.duration',
  description: 'Duration of the processing of a delivered message, until it was acknowledged.',
  bounds,
  dimensions: messagingDimensions,
}

export const dnsLookup: ProtocolDuration = {
  name: 'dns.lookup.duration',
  description: 'Time that a DNS lookup took.',
  bounds,
  dimensions: ['dns.question.name', 'dns.response_code', 'error.type'],
}

export const durations: readonly ProtocolDuration[] = [
  ...[httpServer, httpClient, rpcServer, rpcClient],
  ...[dbClient, messagingClient, messagingProcess, dnsLookup],
]
