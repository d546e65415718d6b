// What causes of `svc explain` and exit codes mean to a user, the most frequent first.

import type { Cause } from '../src/agent/ui/explain-types.ts'
import type { ExitCode } from '../src/lib/start-error.ts'

/** What it means, and what to do about it. */
export type Trouble = readonly [means: string, hint: string]

/** Of `svc explain`. */
export const causes: Readonly<Record<Cause, Trouble>> = {
  permission: [
    'svc may not do what seeing it takes',
    '`svc doctor traces` tries each right and names the line to add to the unit, the container or the pod',
  ],
  kernel_feature_missing: [
    'the kernel lacks what is needed',
    '`svc doctor traces` names it; a newer kernel, see [kernels](kernels.md). All else works meanwhile',
  ],
  switched_off: [
    'tracing is off by configuration, or svc runs as a collector',
    'set `agent.ebpf.enabled: true`, `agent.ebpf.network.enabled: true` and `mode: agent`',
  ],
  not_selected: [
    'no entry of `discovery.instrument` means this process, or one of `discovery.exclude` does',
    'the line “selected” names the entry and what the process has instead: correct it, or take all entries out',
  ],
  excluded_port: [
    '`agent.ebpf.network.include_ports` leaves the port out, or `exclude_ports` names it',
    'add the port to the one, or take it out of the other',
  ],
  unknown_protocol: [
    'its connections speak nothing that svc knows, or something that is switched off',
    'compare with the [protocols](reference/protocols.md); what is encrypted must be by OpenSSL or GnuTLS',
  ],
  tls_without_symbols: [
    'it encrypts with a library whose functions cannot be found: Go’s own TLS, Java, a stripped static OpenSSL',
    'see [TLS](tls.md) for what can be read; else an OpenTelemetry SDK in the program',
  ],
  started_before: [
    'its connections are older than svc, and nothing was said on them since in a way that svc can join',
    'wait for new connections, or restart the client',
  ],
  instrumented: [
    'it exports spans of its own, so svc makes none; its requests are counted all the same',
    'no action needed; to have svc make its spans, disable its SDK',
  ],
  container_not_visible: [
    'no runtime tells the name of its container, or svc cannot see its processes',
    '`svc doctor discovery`: mount the socket of the runtime, and give svc the host’s pid namespace',
  ],
  sampled: [
    'a part of the traces is kept; metrics count every call',
    'raise `agent.ebpf.network.sampling.ratio`; 1 keeps all',
  ],
  rate_limited: [
    'more spans came than `agent.ebpf.network.sampling` or `pipeline.limits.rate` let pass',
    'raise `agent.ebpf.network.sampling.max_spans_per_second` or `pipeline.limits.rate.traces_per_second`',
  ],
  queue_full: [
    'the receiver takes less than comes, and the queue is full',
    'fix the receiver; `queues.traces.mem_limit`, or `pipeline.export.queue` for a queue on disk, gives it longer',
  ],
  endpoint_down: [
    'the receiver does not answer, or refuses',
    '`svc doctor export` tries name, connection, TLS and an empty export, and says which fails',
  ],
  agent: ['this is svc, which never traces itself', 'no action needed; `/metrics` shows what it does'],
  kernel_thread: [
    'a kernel thread, which has no program to probe',
    'nothing; `svc profile` shows its CPU time',
  ],
}

/** Of the process. */
export const exits: Readonly<Record<ExitCode, Trouble>> = {
  0: ['it ended as asked', 'nothing'],
  1: [
    'a fault that has no code of its own, such as an address that is taken; the last line on standard error, or in the log, says which',
    'do what the line says; `svc doctor management` says who has the port; “please report this” is a bug: `svc diagnostics --output svc.tar.gz`',
  ],
  2: [
    'the configuration or the command line is wrong, or a file that a key names cannot be used',
    '`svc validate` names every mistake with its line',
  ],
  3: [
    '`agent.ebpf.required` is true, and a part that was asked of eBPF does not work here',
    '`svc doctor`; or `agent.ebpf.required: false`, for an agent that does the rest',
  ],
  4: [
    'a right is missing: for a port below 1024, a file, or an agent that wants a token',
    'do what the line says; commands: run as root, or set `SVC_TOKEN`',
  ],
  5: [
    '`svc doctor`: a receiver does not take what is sent; `svc queue export`: not all could be copied',
    '`svc doctor export` says what the receiver has against it; `svc queue verify` names damage',
  ],
}
