// Pages of metrics of the shapes that are met, and what can happen to one between two scrapes, or on its way.

/** Numbers from 0 to below 1, the same ones for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

type Random = () => number

export interface ShapedPage {
  readonly format: 'text' | 'openmetrics'
  readonly body: Buffer
}

const nodeExporter = `# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 1.23456789012e+06
node_cpu_seconds_total{cpu="0",mode="iowait"} 184.36
node_cpu_seconds_total{cpu="1",mode="idle"} 4.9351e-05
# HELP node_filesystem_size_bytes Filesystem size in bytes.
# TYPE node_filesystem_size_bytes gauge
node_filesystem_size_bytes{device="/dev/vda1",fstype="ext4",mountpoint="/",device_error=""} 5.2521848832e+10
node_filesystem_size_bytes{device="C:\\\\",fstype="a\\"b",mountpoint="x\\ny",device_error=""} 0
# HELP node_uname_info Labeled system information as provided by the uname system call.
# TYPE node_uname_info gauge
node_uname_info{domainname="(none)",machine="x86_64",nodename="grüße",release="6.18.0",sysname="Linux"} 1
# TYPE node_time_seconds untyped
node_time_seconds 1.7637912000123456e+09
node_textfile_mtime_seconds{file="a"} NaN
node_load1 -0
# a comment
#
`

const kubeState = `# HELP kube_pod_status_phase [STABLE] The pods current phase.
# TYPE kube_pod_status_phase gauge
kube_pod_status_phase{namespace="kube-system",pod="coredns-5d78c9869d-2xkqj",uid="3f1c",phase="Pending"} 0
kube_pod_status_phase{namespace="kube-system",pod="coredns-5d78c9869d-2xkqj",uid="3f1c",phase="Running"} 1
kube_pod_status_phase{namespace="kube-system",pod="coredns-5d78c9869d-2xkqj",uid="3f1c",phase="Failed"} 0
# HELP kube_pod_created [STABLE] Unix creation timestamp
# TYPE kube_pod_created gauge
kube_pod_created{namespace="default",pod="a",uid="b"} 1.763791e+09
# HELP kube_pod_labels [STABLE] Kubernetes labels converted to Prometheus labels.
# TYPE kube_pod_labels gauge
kube_pod_labels{namespace="default",pod="a",uid="b",label_app="x"} 1
`

const goClient = `# HELP http_request_duration_seconds Latency.
# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{code="200",le="0.005"} 24054
http_request_duration_seconds_bucket{code="200",le="0.1"} 100392
http_request_duration_seconds_bucket{code="200",le="+Inf"} 144320
http_request_duration_seconds_sum{code="200"} 53423.12345678901
http_request_duration_seconds_count{code="200"} 144320
http_request_duration_seconds_bucket{code="500",le="0.005"} 1
http_request_duration_seconds_bucket{code="500",le="+Inf"} 2
http_request_duration_seconds_sum{code="500"} 0.30000000000000004
http_request_duration_seconds_count{code="500"} 2
# HELP go_gc_duration_seconds A summary.
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0"} 4.9351e-05
go_gc_duration_seconds{quantile="0.5",} 7.424100000000001e-05
go_gc_duration_seconds{ quantile = "1" } NaN
go_gc_duration_seconds_sum 17.391350544
go_gc_duration_seconds_count 2.2e+01
`

const timed = `a 1 1395066363000
a{b="c"}\t2.5 \t-3000\t
 with:blanks { x = "y" , z="w", }  +Inf  1395066363001
# TYPE late counter
late_total 3 17
# TYPE a gauge
joined{a="1"b="2"}7
`

const quotedNames = `# HELP "my.metric" A name with dots.
# TYPE "my.metric" gauge
{"my.metric","l.x"="v"} 1
{"l.x"="w","my.metric",} 2
{"my.metric"} 3
plain{"l \\"x\\""="v",b="c"} 4 5
`

const openMetrics = `# TYPE http_requests counter
# UNIT http_requests requests
# HELP http_requests All \\"of\\" them.
http_requests_total{code="200"} 1027 1395066363.123
http_requests_created{code="200"} 1.7637912e9 1395066363.123
# TYPE temperature_celsius gauge
# UNIT temperature_celsius celsius
temperature_celsius{place="attic"} -12.5
# TYPE build info
build_info{version="1.2"} 1
# TYPE state stateset
state{state="a"} 1
state{state="b"} 0
# TYPE queue gaugehistogram
queue_bucket{le="1.0"} 3
queue_bucket{le="+Inf"} 4
queue_gsum 12
queue_gcount 4
# TYPE odd unknown
{"odd"} 0.1
# EOF
`

const exemplars = `# TYPE latency histogram
latency_bucket{le="0.1"} 8 # {trace_id="0af7651916cd43dd8448eb211c80319c",span_id="b7ad6b7169203331"} 0.054
latency_bucket{le="+Inf"} 9 # {} 0.67 1520879607.789
latency_sum 3.5 1520879607
latency_count 9 1520879607 # {a="b"} 1 5
# EOF
`

export const shapes: readonly ShapedPage[] = [
  ...[nodeExporter, kubeState, goClient, timed, quotedNames].map(text => ({
    format: 'text' as const,
    body: Buffer.from(text),
  })),
  ...[openMetrics, exemplars].map(text => ({ format: 'openmetrics' as const, body: Buffer.from(text) })),
]

const numberForms = [
  '0',
  '-0',
  '+1',
  '.5',
  '5.',
  '1e5',
  '1E+05',
  '1e-7',
  '1e22',
  '1e23',
  '-1.5e-10',
  '123456789012345',
  '1234567890123456',
  '9007199254740993',
  '0.1234567890123456789',
  '18446744073709551615',
  '1e308',
  '1e309',
  '2.4703282292062328e-324',
  '1.7976931348623159e308',
  '4.35',
  '0.000001',
  '1234567e-40',
  'NaN',
  'nan',
  '+NaN',
  'Inf',
  '+Inf',
  '-inf',
  'Infinity',
  '-INFINITY',
  'infi',
  'in',
  '1_000',
  '0x1p-2',
  '0x10',
  '1e',
  'e5',
  '.',
  '-',
  '+',
  '1.2.3',
  '--1',
  '00012',
  '1d',
  '9'.repeat(30),
  `0.${'0'.repeat(30)}1`,
  '1395066363000',
  '9223372036854775807',
  '9223372036854775808',
  '-9223372036854775808',
]

const pieces = [
  '\n',
  '\n\n',
  ' ',
  '\t',
  '\r\n',
  '\0',
  '"',
  '\\',
  '{',
  '}',
  ',',
  '=',
  '#',
  '# ',
  '# EOF\n',
  '\\n',
  '\\"',
  'é',
  '\xff',
  '{}',
  '# TYPE a counter\n',
  '# HELP a b\\n\n',
  'a 1\n',
  'x{y="z"} 2\n',
  ' # {a="b"} 1\n',
  '_total',
  '__name__',
  '# TYPE',
  '# HELP',
  '# UNIT a_b b\n',
  '\n#\0\n',
  '""',
  '_sum 1\n',
  '{"q"} 1\n',
  ':',
]

const pick = <T>(from: readonly T[], random: Random): T => from[Math.floor(random() * from.length)]!
/** The value, and the timestamp, of a line that is no comment. */
const places = /(?<=^[^#\n].*[ \t}])([^ \t\n}]+)([ \t]+-?\d+)?[ \t]*$/gm

/** Another number for some samples, and nothing else. */
function otherNumbers(text: string, random: Random): string {
  return text.replace(places, (whole, _value: string, time: string | undefined) => {
    if (random() < 0.4) return whole
    const told = time?.replace(/\d+/, () => String(Math.trunc(random() * 2e12))) ?? ''
    return `${otherNumber(random)}${told}`
  })
}

function otherNumber(random: Random): string {
  const form = random()
  if (form < 0.1) return pick(numberForms, random)
  if (form < 0.5) return String(Math.trunc(random() * 1e6))
  const value = (random() - 0.2) * 10 ** Math.floor(random() * 30 - 12)
  return form < 0.6
    ? value.toExponential(Math.floor(random() * 8))
    : form < 0.8
      ? value.toFixed(3)
      : String(value)
}

const changes: readonly ((text: string, random: Random) => string)[] = [
  otherNumbers,
  (text, random) => splice(text, random, 1, ''),
  (text, random) => splice(text, random, Math.floor(random() * 8), ''),
  (text, random) => splice(text, random, 0, pick(pieces, random)),
  (text, random) => splice(text, random, 1, pick(pieces, random)),
  (text, random) => splice(text, random, 1, String.fromCharCode(Math.floor(random() * 256))),
  (text, random) => text.slice(0, Math.floor(random() * text.length)),
  (text, random) => lines(text, all => all.splice(Math.floor(random() * all.length), 1)),
  (text, random) => lines(text, all => all.splice(Math.floor(random() * all.length), 0, pick(all, random))),
  (text, random) => lines(text, all => all.push(...all.splice(Math.floor(random() * all.length), 2))),
  (text, random) =>
    lines(text, all => {
      const at = Math.floor(random() * all.length)
      all[at] = `${all[at]} ${pick(numberForms, random)}`
    }),
  (text, random) =>
    lines(text, all => {
      const at = Math.floor(random() * all.length)
      all[at] = all[at]!.replace(/ [^ ]*$/, random() < 0.5 ? '' : '\r')
    }),
  text => text.replace(/\n$/, ''),
  (text, random) => (random() < 0.2 ? text.replaceAll('\n', '\r\n') : text),
]

/** The page as it might be one scrape later: half of the time with other numbers only. */
export function mutated(body: Buffer, random: Random): Buffer {
  let text = body.toString('latin1')
  if (random() < 0.5) return Buffer.from(otherNumbers(text, random), 'latin1')
  const count = 1 + Math.floor(random() * 3)
  for (let i = 0; i < count; i++) text = pick(changes, random)(text, random)
  return Buffer.from(text, 'latin1')
}

function splice(text: string, random: Random, remove: number, insert: string): string {
  const at = Math.floor(random() * (text.length + 1))
  return text.slice(0, at) + insert + text.slice(at + remove)
}

function lines(text: string, change: (lines: string[]) => unknown): string {
  const all = text.split('\n')
  change(all)
  return all.join('\n')
}
