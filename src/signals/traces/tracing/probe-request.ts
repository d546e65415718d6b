import type { Operation } from '../../../foundation/model/stream.ts'

/** Maximum bytes of a head that are read. */
const mostBytes = 2048
const paths =
  /^\/(-\/(healthy|ready)|actuator\/(health|prometheus|info)(\/[\w.-]{0,64})?|(health|ready|readiness|live|liveness|startup)(z|check|probe)?|health[-_]check|(metrics|federate|ping|status|stub_status|nginx_status|server-status))\/?$/
/** User agents of health checks and metrics scrapers, by prefix. */
const agents =
  /^(kube-probe|prometheus|vmagent|grafana-?alloy|grafanaagent|otelcol|telegraf|googlehc|elb-healthchecker|consul health check|blackbox[ -]exporter|uptime-kuma|check_http|haproxy|datadog agent|victoriametrics)\b/i
const methods = new Set<unknown>(['GET', 'HEAD', 'OPTIONS'])
/** The health checking protocol of gRPC. */
const grpcHealth = 'grpc.health.v1.Health/'

/** Whether a request is only a health check or a metrics scrape, by its path or its user agent. HTTP and gRPC only. */
export function isProbe(operation: Operation): boolean {
  const { path, attributes } = operation.call
  if (path === '') return String(attributes.get('rpc.method') ?? '').startsWith(grpcHealth)
  if (!methods.has(attributes.get('http.request.method'))) return false
  return paths.test(path) || agents.test(String(attributes.get('user_agent.original') ?? agentOf(operation)))
}

/** The user agent, which a client's span does not have. HTTP/1 only. */
function agentOf({ connection, head }: Operation): string {
  if (connection.server || connection.protocol !== 'http1') return ''
  const text = head.bytes.toString('latin1', head.start, Math.min(head.end, head.start + mostBytes))
  return /\r\nuser-agent: ?([^\r\n]{0,40})/i.exec(text)?.[1] ?? ''
}
