// Other texts for users: messages of the start, answers of the API, and resource usage.
import type { ErrorStatus } from '../src/view/api/answer.ts'
import type { Trouble } from './troubleshooting-causes.ts'

/** Failures of the start: the beginning of the message, as in the sources. */
export const starts: readonly (readonly [message: string, ...Trouble])[] = [
  [
    'cannot listen on',
    'another program uses the port of `self_telemetry.listen`, often another svc. If a node exporter uses :9100, svc runs without host metrics and logs a warning',
    'stop it, or change the key named in the message',
  ],
  [
    'cannot read the configuration:',
    'the file does not exist, cannot be read, or is not UTF-8 text',
    'correct the path of `--config` or `SVC_CONFIG_FILE`; without a file svc uses its defaults',
  ],
  [
    'cannot start: agent.ebpf.required is true',
    'an enabled eBPF feature does not work here, and the configuration requires it',
    'fix the missing feature named in the message; or set `agent.ebpf.required: false`',
  ],
  [
    'cannot serve the management API:',
    'its certificate or key cannot be used',
    '`svc doctor management` shows the file and the reason',
  ],
  [
    'cannot serve the host metrics:',
    'a certificate or key of `agent.nodeexporter.tls` cannot be used',
    'the message names the file; `agent.nodeexporter.enabled: false` starts without them',
  ],
  [
    'no Node.js runtime found',
    'the program directory is incomplete',
    'reinstall the package; in a source tree: `npm start`',
  ],
]

/** Errors of the API, by code. */
export const refusals: Readonly<Record<ErrorStatus, Trouble>> = {
  400: ['a parameter or the body is wrong; `message` names it', 'see [the API](reference/api.md)'],
  401: ['a token is missing or invalid', 'send `Authorization: Bearer TOKEN`'],
  403: [
    'allowed only from this host while no token is configured, or a request from a web page of another origin',
    'send it from the host (`ssh -L`, `kubectl port-forward`), or set `self_telemetry.auth`',
  ],
  404: [
    'no such path; `/debug/*` exists only in debug mode, `/ui/api/*` with `self_telemetry.ui.enabled`',
    'see [the API](reference/api.md)',
  ],
  405: ['the path does not support this method; `Allow` lists the supported ones', 'use one of those'],
  408: ['the request was not complete within 30 s', 'send it again'],
  409: ['another request of this kind is in progress', 'try again when it is done'],
  413: ['the body is over 64 KiB', 'send a smaller body'],
  414: ['the URL is over 8 KiB', 'use a shorter URL'],
  415: ['the body is not JSON', 'set `Content-Type: application/json`'],
  417: ['an expectation other than 100-continue', 'leave `Expect` out'],
  429: ['`self_telemetry.rate_limit` was exceeded', 'wait for the time in `Retry-After`, or raise the limit'],
  431: ['the headers are over 16 KiB', 'send fewer headers'],
  500: ['a bug', 'the error is in the log: please report it'],
  503: ['svc is starting, stopping, or at an internal limit; `message` names it', 'retry later'],
}

/** Resource usage. */
export const tooMuch = `## High resource usage

\`svc status\` shows current usage, \`/metrics\` over time: \`svc_process_resident_memory_bytes\`, \`svc_process_cpu_seconds_total\`.

| symptom | cause | fix |
|---|---|---|
| memory of 130 to 140 MB on a quiet host | normal: about 75 MB of it are file pages, mostly of the runtime, which the kernel reclaims when needed | no action; [what costs memory](develop/runtime.md#what-costs-memory) |
| memory grows while the receiver is down | queued data, up to a limit | lower \`queues.SIGNAL.mem_limit\`; enable the queue on disk for the rest |
| more memory than that | page history, profile symbols, the ring buffer | lower \`self_telemetry.ui.max_memory\`, \`agent.profiling.symbols.cache_size\`, \`agent.ebpf.ringbuf_size\` |
| killed at its memory limit | the limit is too low for the enabled features | set it to 256 MB, or turn off \`agent.profiling.enabled\`, \`self_telemetry.ui.enabled\` |
| CPU usage proportional to requests | each one costs some microseconds | lower \`agent.ebpf.network.sampling.max_spans_per_second\`: requests above it are only counted, in the kernel |
| kernel CPU usage at every call | the back end \`syscalls\` runs at all system calls that may use a socket | use Linux 6.3 or newer; exclude ports with \`agent.ebpf.network.exclude_ports\` |
| CPU usage on a quiet host | profiles, or scrapes of many collectors | lower \`agent.profiling.sample_rate\`; scrape less often |
| the disk fills up | the queue, while the receiver is down | lower \`pipeline.export.queue.max_size_bytes\`; \`svc queue ls\` lists queued data |
| a large bill at the receiver | too many series, spans or records | [limits](limits.md); \`GET /debug/pipeline/stats\` names the label that has many values |`
