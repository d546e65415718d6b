// The duration histograms that protocols fill, by the conventions 1.44. One object for each metric, as series are found by it.

import type { DurationDesc } from '../model/exchange.ts'

/** Bounds that the conventions advise for durations, in seconds. */
export const bounds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]

/** Bounds that the kernel counts in: those of every histogram here. */
export const kernelBounds: readonly number[] = [0.001, ...bounds]

export const httpServer: DurationDesc = {
  name: 'http.server.request.duration',
  description: 'Duration of HTTP server requests.',
  bounds,
}

export const httpClient: DurationDesc = {
  name: 'http.client.request.duration',
  description: 'Duration of HTTP client requests.',
  bounds,
}

export const rpcServer: DurationDesc = {
  name: 'rpc.server.call.duration',
  description: 'Duration of remote procedure calls that came in.',
  bounds,
}

export const rpcClient: DurationDesc = {
  name: 'rpc.client.call.duration',
  description: 'Duration of remote procedure calls that went out.',
  bounds,
}

export const dbClient: DurationDesc = {
  name: 'db.client.operation.duration',
  description: 'Duration of database client operations.',
  bounds: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
}

export const messagingClient: DurationDesc = {
  name: 'messaging.client.operation.duration',
  description: 'Duration of messaging operations that a client started.',
  bounds,
}

export const messagingProcess: DurationDesc = {
  name: 'messaging.process.duration',
  description: 'Duration of the processing of a delivered message, until it was acknowledged.',
  bounds,
}

export const dnsLookup: DurationDesc = {
  name: 'dns.lookup.duration',
  description: 'Time that a DNS lookup took.',
  bounds,
}
