// Meaning of the causes of `svc explain` and of exit codes, most frequent first.

import type { ExitCode } from '../src/foundation/lib/start-error.ts'
import { type Cause, rateReasons } from '../src/program/documents/explain-types.ts'

const rateLinks = Object.values(rateReasons)
  .flat()
  .map(reason => `[${reason}](#drop-${reason})`)
  .join(', ')

/** Its meaning, and the fix. */
export type Trouble = readonly [means: string, hint: string]

/** Causes of `svc explain`. */
export const causes: Readonly<Record<Cause, Trouble>> = {
  permission: [
    'svc lacks the permissions to observe it',
    '`svc doctor traces` checks each permission and shows the line to add to the unit, container or pod',
  ],
  kernel_feature_missing: [
    'the kernel lacks a required feature',
    '`svc doctor traces` names it; use a newer kernel, see [kernels](kernels.md). Other features still work',
  ],
  switched_off: [
    'tracing is off in the configuration, or svc runs in mode collector',
    'set `agent.ebpf.enabled: true`, `agent.ebpf.network.enabled: true` and `mode: agent`',
  ],
  not_selected: [
    'no entry of `discovery.instrument` matches this process, or an entry of `discovery.exclude` does',
    'the line “selected” shows the entry and the actual values of the process: correct it, or remove all entries',
  ],
  excluded_port: [
    'the port is not in `agent.ebpf.network.include_ports`, or it is in `exclude_ports`',
    'add the port to the first, or remove it from the second',
  ],
  unknown_protocol: [
    'its connections use a protocol that svc does not support, or that is turned off',
    'see the list of [protocols](reference/protocols.md); encrypted traffic is read only for OpenSSL and GnuTLS',
  ],
  tls_without_symbols: [
    'it uses a TLS library whose functions cannot be found: Go’s own TLS, Java, a stripped static OpenSSL',
    'see [TLS](tls.md) for supported libraries; else use an OpenTelemetry SDK in the program',
  ],
  started_before: [
    'its connections are older than svc, and svc found no point in their traffic at which to join',
    'wait for new connections, or restart the client',
  ],
  instrumented: [
    'it exports its own spans, so svc creates none; its requests are still counted',
    'no action; to get spans from svc instead, turn off its SDK',
  ],
  container_not_visible: [
    'no runtime reports the name of its container, or svc cannot see its processes',
    'run `svc doctor discovery`; mount the socket of the runtime, and run svc in the host’s pid namespace',
  ],
  sampled: [
    'only a fraction of traces is kept; metrics count every call',
    'raise `agent.ebpf.network.sampling.ratio`; 1 keeps all',
  ],
  rate_limited: [
    `more spans than \`agent.ebpf.network.sampling\`, a buffer of the kernel or \`pipeline.limits.rate\` allows: the drop reasons ${rateLinks}`,
    'raise `agent.ebpf.network.sampling.max_spans_per_second`, the buffer or `pipeline.limits.rate.traces_per_second`: `svc explain` names it',
  ],
  queue_full: [
    'the receiver is slower than the incoming data, and the queue is full',
    'fix the receiver; a larger `queues.traces.mem_limit`, or a queue on disk (`pipeline.export.queue`), bridges longer outages',
  ],
  endpoint_down: [
    'the receiver does not answer, or rejects data',
    '`svc doctor export` checks name, connection, TLS and an empty export, and shows which one fails',
  ],
  agent: ['it is svc itself, which is never traced', 'no action; its own metrics are at `/metrics`'],
  kernel_thread: [
    'it is a kernel thread, which has no program to observe',
    'no action; `svc profile` shows its CPU time',
  ],
}

/** Exit codes of the process. */
export const exits: Readonly<Record<ExitCode, Trouble>> = {
  0: ['it stopped on request', 'nothing'],
  1: [
    'an error without its own code, such as an address in use; the last line on standard error or in the log names it',
    'follow that line; `svc doctor management` shows which process uses the port; “please report this” is a bug: run `svc diagnostics --output svc.tar.gz`',
  ],
  2: [
    'the configuration or the command line is invalid, or a file named in a key cannot be used',
    '`svc validate` lists every error with its line',
  ],
  3: [
    '`agent.ebpf.required` is true, but an enabled eBPF feature does not work here',
    'run `svc doctor`; or set `agent.ebpf.required: false` to run without it',
  ],
  4: [
    'missing permission for a port below 1024, for a file, or for an agent that requires a token',
    'follow the message; for commands: run as root, or set `SVC_TOKEN`',
  ],
  5: [
    '`svc doctor`: a receiver does not accept data; `svc queue export`: not all data could be copied',
    '`svc doctor export` shows the reason; `svc queue verify` lists damage',
  ],
}
