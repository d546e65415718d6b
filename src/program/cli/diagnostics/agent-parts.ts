import type { AgentAnswer, AgentClient } from '../../client/agent-client.ts'
import { messageOf } from '../running-agent.ts'
import type { Part } from './part.ts'

const Ki = 1024
const Mi = 1024 * Ki

/** Time limit for one answer; a heap profile stops the agent for a moment. */
const timeoutMs = 8000

type Page = Omit<Part, 'source' | 'collect'> & { readonly path: string; readonly also?: number }

function pages(metricsPath: string): readonly Page[] {
  const json = (name: string, path: string, what: string, mostBytes: number): Page => ({
    name: `agent/${name}.json`,
    path,
    what,
    form: 'json',
    mostBytes,
  })
  const profile = (name: string, what: string): Page => ({
    name: `agent/${name}.pb.gz`,
    path: `/debug/pprof/${name}`,
    what: `${what}, for "go tool pprof"; in debug mode only`,
    form: 'gzip',
    mostBytes: Mi,
  })
  return [
    { ...json('ready', '/ready', 'Readiness, by subsystem', 32 * Ki), also: 503 },
    json('status', '/status', 'Status of the agent, with degraded features', 256 * Ki),
    json('config', '/config', 'Configuration of the running agent', Mi),
    json('ebpf', '/status/ebpf', 'eBPF programs and maps of the agent, with kernel counters', Mi / 2),
    json('export', '/status/export', 'Receivers and queues', 128 * Ki),
    json('discovery', '/status/discovery', 'Discovery: services, containers, cloud', Mi),
    json('logs-status', '/status/logs', 'Collected logs', 128 * Ki),
    json('gpu', '/status/gpu', 'GPUs', 64 * Ki),
    json('pipeline', '/debug/pipeline/stats', 'Stages of the pipeline; in debug mode only', 128 * Ki),
    json('vars', '/debug/vars', 'Command line and memory; in debug mode only', 64 * Ki),
    {
      name: 'agent/metrics.txt',
      path: metricsPath,
      what: 'The agent’s own metrics, in the Prometheus text format',
      form: 'text',
      mostBytes: 2 * Mi,
    },
    {
      name: 'agent/log.ndjson',
      path: '/admin/logs',
      what: 'The first log records of the agent since its start, and the latest',
      form: 'lines',
      mostBytes: Mi / 2,
    },
    profile('heap', 'Memory in use'),
    profile('goroutine', 'Active asynchronous work'),
  ]
}

/** Data of the running agent; without one, every page has the reason instead. */
export function agentParts(client: AgentClient | undefined, metricsPath: string): Part[] {
  return pages(metricsPath).map(({ path, also, ...page }) => ({
    ...page,
    source: `GET ${path}`,
    collect: async mostBytes => {
      if (client === undefined) throw new Error('no agent answers')
      const answer = await client.get(path, { timeoutMs, mostBytes })
      if (answer.status !== 200 && answer.status !== also) throw new Error(refusalOf(answer))
      return answer
    },
  }))
}

/** The message of an error answer, in one line. */
function refusalOf({ status, body }: AgentAnswer): string {
  const message = messageOf(body).slice(0, 500)
  return `HTTP ${status}${message && `: ${message}`}`
}
