// What is measured of an agent in a machine of its own, and how it was asked to run there.

/** Of the servers that are watched. */
export const ports = { front: 8080, back: 8081, tls: 8443, redis: 6379 } as const

/** How often each thing is done. */
export const counts = { http: 40, redis: 10, tls: 10, statfs: 7, starts: 10, lines: 100 } as const

/** Whole stacks of the programs that are profiled, from the outermost function to one that is certainly there. */
export const wholeStacks = {
  cpu: /main;work;large_frame;leaf_a;spin/,
  memory: /main;round_of_growth;grow_large/,
  off_cpu: /main;nap_long;nap;/,
  script: /busyOfTheTest/,
} as const
export type Profiled = keyof typeof wholeStacks

export interface KernelRun {
  /** As `agent.ebpf.backend` has it. */
  readonly backend: string
  /** Beside requests what `svc doctor` says, or also everything else that does not depend on the back end. */
  readonly what: 'requests' | 'doctor' | 'all'
  /** Programs that the agent's command is passed to. */
  readonly wrapper: readonly string[]
  /** Whom its directories belong to. */
  readonly user: number
}

/** Of one kind of requests: what clients and servers were seen to do. */
export interface Seen {
  readonly clientSpans: number
  readonly serverSpans: number
  readonly clientCount: number
  readonly serverCount: number
}

export interface Doctored {
  readonly topic: string
  readonly name: string
  readonly state: string
  readonly fault: string | undefined
  readonly detail: string
}

export interface KernelReport {
  readonly release: string
  /** Why there is no more: what an agent said that did not start. */
  readonly failed: string | undefined
  /** Milliseconds from its start until it answered. */
  readonly startMs: number
  readonly rssKb: number
  /** The checks of /ready. */
  readonly ready: Readonly<Record<string, string>>
  /** The subsystems of /status that do less than they were asked to. */
  readonly degraded: readonly { readonly subsystem: string; readonly reason: string }[]
  /** Of eBPF that are loaded. */
  readonly programs: readonly string[]
  /** Of the capture, but for those that are 0. */
  readonly counters: Readonly<Record<string, number>>
  readonly http: Seen
  readonly redis: Seen
  readonly tls: Seen
  /** Why the runtime's TLS is not read. */
  readonly tlsFault?: string
  /** Traces of a request from the client to the last server, and of these the ones that are whole. */
  readonly chains: number
  readonly errors: readonly string[]
  readonly doctor?: readonly Doctored[]
  readonly rest?: KernelRest
}

export interface KernelRest {
  /** Connections that were opened to the front server, as the server's process counts them. */
  readonly opened: number
  readonly roundTrips: number
  readonly flowBytes: number
  readonly execs: number
  readonly exits: number
  readonly statfsCalls: number
  /** Folded stacks of kinds, and of CPU time of a program in JavaScript; or why there are none. */
  readonly profiles: Readonly<Record<Profiled, string>>
  readonly hostFamilies: number
  /** Collectors that fail, with the reason. */
  readonly collectorsFailed: Readonly<Record<string, string>>
  readonly lines: number
  readonly services: readonly string[]
}
