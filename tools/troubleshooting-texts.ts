// What else users see: messages of the start, answers of the API, and what svc uses.
import type { ErrorStatus } from '../src/api/answer.ts'
import type { Trouble } from './troubleshooting-causes.ts'

/** How a start fails: the beginning of the message, as it stands in the sources. */
export const starts: readonly (readonly [message: string, ...Trouble])[] = [
  [
    'cannot listen on',
    'another program has the port of `self_telemetry.listen`, often another svc. At :9100 a node exporter often has it: svc runs then, without the host metrics, and warns',
    'stop it, or change the key that the message names',
  ],
  [
    'cannot read the configuration:',
    'the file is not there, cannot be read, or is not UTF-8 text',
    'correct the path of `--config` or `SVC_CONFIG_FILE`; without any file the defaults serve',
  ],
  [
    'cannot start: agent.ebpf.required is true',
    'a part that was asked of eBPF does not work here, and the configuration insists on it',
    'the message says what is missing; or set `agent.ebpf.required: false`',
  ],
  [
    'cannot serve the management API:',
    'its certificate or key cannot be used',
    '`svc doctor management` says which file and why',
  ],
  [
    'cannot serve the host metrics:',
    'a certificate or key of `agent.nodeexporter.tls` cannot be used',
    'the message names the file; `agent.nodeexporter.enabled: false` starts without them',
  ],
  [
    'no Node.js runtime found',
    'the program directory is not whole',
    'reinstall the package; in a source tree: `npm start`',
  ],
]

/** Of the API, by its code. */
export const refusals: Readonly<Record<ErrorStatus, Trouble>> = {
  400: ['a parameter or the body is wrong; `message` names it', 'see [the API](reference/api.md)'],
  401: ['a token is needed, or the one that was sent is none', 'send `Authorization: Bearer TOKEN`'],
  403: [
    'it is for this host alone while no token is configured, or a web page of another origin asks',
    'ask from the host (`ssh -L`, `kubectl port-forward`), or set `self_telemetry.auth`',
  ],
  404: [
    'there is no such path; `/debug/*` is there in debug mode only, `/ui/api/*` with `self_telemetry.ui.enabled`',
    'see [the API](reference/api.md)',
  ],
  405: ['the path has other methods; `Allow` names them', 'use one of them'],
  408: ['the request did not come whole within 30 s', 'send it again'],
  409: ['another one of its kind is under way', 'try again when it is done'],
  413: ['the body is over 64 KiB', 'send less'],
  414: ['the URL is over 8 KiB', 'send less'],
  415: ['the body is not JSON', 'set `Content-Type: application/json`'],
  417: ['an expectation other than 100-continue', 'leave `Expect` out'],
  429: ['`self_telemetry.rate_limit` was reached', 'wait as `Retry-After` says, or raise it'],
  431: ['the headers are over 16 KiB', 'send fewer'],
  500: ['a bug', 'the log has the error: please report it'],
  503: [
    'svc is starting, ending, or at a bound of its own; `message` says which',
    'try again a little later',
  ],
}

/** What it uses. */
export const tooMuch = `## It uses too much

\`svc status\` says what it uses, \`/metrics\` over time: \`svc_process_resident_memory_bytes\`, \`svc_process_cpu_seconds_total\`.

| I see | it means | do this |
|---|---|---|
| memory of 130 to 140 MB on a quiet host | normal: some 75 MB of it are pages of files, mostly the runtime’s own, which the kernel takes back when it needs them | nothing; [what costs memory](develop/runtime.md#what-costs-memory) |
| memory that grows while the receiver is away | what waits is kept up to a bound | lower \`queues.SIGNAL.mem_limit\`; the queue on disk takes the rest |
| more memory still | the look back, symbols of profiles, the ring | lower \`self_telemetry.ui.max_memory\`, \`agent.profiling.symbols.cache_size\`, \`agent.ebpf.ringbuf_size\` |
| killed at its limit of memory | the limit is below what is switched on | give it 256 MB, or switch off \`agent.profiling.enabled\`, \`self_telemetry.ui.enabled\` |
| CPU that follows the requests | each costs some microseconds | lower \`agent.ebpf.network.sampling.max_spans_per_second\`: what is above is counted in the kernel only |
| CPU of the kernel at every call | the back end \`syscalls\` sees all system calls that may be on a socket | a kernel from 6.3 on; leave ports out by \`agent.ebpf.network.exclude_ports\` |
| CPU on a quiet host | profiles, or scrapes of many collectors | lower \`agent.profiling.sample_rate\`; scrape less often |
| the disk fills | the queue, while the receiver is away | lower \`pipeline.export.queue.max_size_bytes\`; \`svc queue ls\` says what waits |
| a large bill at the receiver | too many series, spans or records | [limits](limits.md); \`GET /debug/pipeline/stats\` names the label that has many values |`
