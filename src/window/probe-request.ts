import type { Exchange } from '../model/exchange.ts'

/** Bytes of a head that are looked at. */
const mostBytes = 2048
const paths =
  /^\/(-\/(healthy|ready)|actuator\/(health|prometheus|info)(\/[\w.-]{0,64})?|(health|ready|readiness|live|liveness|startup)(z|check|probe)?|health[-_]check|(metrics|federate|ping|status|stub_status|nginx_status|server-status))\/?$/
/** Those that ask again and again whether something lives, or for its metrics, by the beginning of what they are called. */
const agents =
  /^(kube-probe|prometheus|vmagent|grafana-?alloy|grafanaagent|otelcol|telegraf|googlehc|elb-healthchecker|consul health check|blackbox[ -]exporter|uptime-kuma|check_http|haproxy|datadog agent|victoriametrics)\b/i

/** Whether a request asks for health or metrics and nothing else, by its path or by who says to ask. HTTP/1 only. */
export function isProbe({ protocol, bytes, requestStart, requestEnd }: Exchange): boolean {
  if (protocol !== 'http1') return false
  const head = bytes.toString('latin1', requestStart, Math.min(requestEnd, requestStart + mostBytes))
  const line = head.indexOf('\r\n')
  const from = head.indexOf(' ')
  if (line < 0 || from < 0 || from > 8) return false
  const method = head.slice(0, from)
  if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS') return false
  const target = head.slice(from + 1, head.indexOf(' ', from + 1))
  const query = target.indexOf('?')
  if (paths.test(query < 0 ? target : target.slice(0, query))) return true
  const agent = /\r\nuser-agent: ?([^\r\n]{0,40})/i.exec(head)
  return agent !== null && agents.test(agent[1]!)
}
