import { type RequestOptions, request } from 'node:http'
import { bareHost } from '../../../foundation/lib/host-port.ts'
import { bodyOf, headOf } from '../../../foundation/lib/http-answer.ts'
import { text } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { parseXmlRpc, type XmlRpcValue, xmlRpcCall } from './_xml-rpc.ts'
import { collector, counter, gauge } from './collector.ts'

const labels = ['group', 'name']
const up = gauge('supervisord_up', 'Whether a process runs, starts or stops (1), or not (0).', { labels })
const state = gauge('supervisord_state', 'State of a process, as supervisord numbers them.', { labels })
const exitStatus = gauge('supervisord_exit_status', 'What a process ended with the last time; 0 before.', {
  labels,
})
const startTime = counter(
  'supervisord_start_time_seconds',
  'When a process was started, in seconds since the Unix epoch.',
  { labels },
)

/** Starting, running, stopping (supervisord.org, "Subprocesses"). */
const upStates = [10, 20, 40]
const mostBytes = 1024 * 1024

const address = text({
  expects: 'an http, https or unix URL',
  valid: url => /^(https?|unix):\/\/./i.test(url) && URL.canParse(url),
  show: url => url.replace(/^([a-z]+:\/\/)[^/@]*@/i, '$1[REDACTED]@'),
})

/** A process managed by supervisord. */
interface Process {
  readonly group: string
  readonly name: string
  readonly state: number
  readonly exitStatus: number
  readonly start: number
}

/** Processes under supervisord, queried over XML-RPC. */
export const supervisord = collector({
  name: 'supervisord',
  summary: 'State of processes under supervisord (deprecated)',
  source: 'supervisord over XML-RPC',
  enabledByDefault: false,
  metrics: [up, state, exitStatus, startTime],
  options: {
    url: key(address, 'http://localhost:9001/RPC2', 'XML-RPC endpoint: http, https or unix.'),
  },
  start({ url }) {
    const target = targetOf(url)
    let processes: readonly Process[] | undefined
    return {
      async wait(signal) {
        processes = undefined
        try {
          const answer = await post(target, xmlRpcCall('supervisor.getAllProcessInfo'), signal)
          processes = processesOf(parseXmlRpc(answer))
        } catch (error) {
          const why = (error as Error).message || (error as NodeJS.ErrnoException).code
          throw new Error(`cannot query supervisord at ${address.show(url, shown => shown)}: ${why}`, {
            cause: error,
          })
        }
      },
      collect(readings) {
        for (const each of processes ?? []) {
          const isUp = upStates.includes(each.state)
          readings.set(state, each.state, each.group, each.name)
          readings.set(exitStatus, each.exitStatus, each.group, each.name)
          readings.set(up, isUp ? 1 : 0, each.group, each.name)
          if (isUp) readings.set(startTime, each.start, each.group, each.name)
        }
      },
    }
  },
})

/** Options of a request to the URL. Over a socket the path is supervisord's default. */
function targetOf(url: string): RequestOptions {
  const { protocol, pathname, hostname, port, search, username, password } = new URL(url)
  if (protocol === 'unix:') return { socketPath: decodeURIComponent(pathname), path: '/RPC2', host: 'unix' }
  return {
    protocol,
    hostname: bareHost(hostname),
    path: `${pathname}${search}`,
    ...(port === '' ? {} : { port }),
    ...(username === '' ? {} : { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` }),
  }
}

/** Sends a document and returns the response. Rejects if it failed, or is too long. */
async function post(target: RequestOptions, document: string, signal: AbortSignal): Promise<string> {
  // TLS takes 3 MB of memory, and is rarely needed here.
  const send = target.protocol === 'https:' ? (await import('node:https')).request : request
  const headers = { 'content-type': 'text/xml', 'content-length': Buffer.byteLength(document) }
  const call = send({ ...target, method: 'POST', headers, agent: false })
  const answer = await headOf(call, { stop: signal, body: document })
  const body = await bodyOf(answer, mostBytes).catch((fault: Error) => {
    throw new Error(`the response ${fault.message.replace(/^it /, '')}`, { cause: fault })
  })
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`)
  return body.toString('utf8')
}

function processesOf(answer: XmlRpcValue): readonly Process[] {
  if (!Array.isArray(answer)) throw new Error('invalid response: not a list of processes')
  return (answer as readonly XmlRpcValue[]).map(item => {
    if (!(item instanceof Map)) throw new Error('invalid response: a process without properties')
    return {
      group: textOf(item, 'group'),
      name: textOf(item, 'name'),
      state: numberOf(item, 'state'),
      exitStatus: numberOf(item, 'exitstatus'),
      start: numberOf(item, 'start'),
    }
  })
}

function textOf(item: ReadonlyMap<string, XmlRpcValue>, name: string): string {
  const value = item.get(name)
  if (typeof value !== 'string') throw new Error(`invalid response: a process without ${name}`)
  return value
}

function numberOf(item: ReadonlyMap<string, XmlRpcValue>, name: string): number {
  const value = item.get(name)
  if (typeof value !== 'number') throw new Error(`invalid response: a process without ${name}`)
  return value
}
