import { askKernel, protocols } from '../../../kernel/netlink.ts'
import { collector, gauge } from './collector.ts'

const name = 'tcp_connection_states'
const help = 'TCP sockets by state, and bytes in the queues of all of them together.'
const labels = ['state']
const connections = gauge(name, help, {
  labels,
  otel: {
    name: 'system.network.connection.count',
    unit: '{connection}',
    kind: 'updowncounter',
    attributes: { state: 'network.connection.state' },
    constant: { 'network.transport': 'tcp' },
    values: {
      syn_recv: 'syn_received',
      fin_wait1: 'fin_wait_1',
      fin_wait2: 'fin_wait_2',
      close: 'closed',
    },
  },
})
/** The same for the Prometheus page, without the number of connections. */
const queues = gauge(name, help, { labels })

/** States by number in the kernel (net/tcp_states.h). */
const states = [
  'unknown',
  'established',
  'syn_sent',
  'syn_recv',
  'fin_wait1',
  'fin_wait2',
  'time_wait',
  'close',
  'close_wait',
  'last_ack',
  'listen',
  'closing',
]

const dumpByFamily = 20
const tcp = 6
const inet = 2
const inet6 = 10
const allStates = 0xfff

/** States of TCP sockets, from sock_diag(7). */
export const tcpstat = collector({
  name: 'tcpstat',
  summary: 'TCP sockets by state',
  source: 'sock_diag(7)',
  enabledByDefault: false,
  metrics: [connections, queues],
  start: (_options, { host }) => {
    const counts = new Float64Array(states.length)
    let received = 0
    let sent = 0
    const count = (family: number): void => {
      const payload = Buffer.alloc(56)
      payload[0] = family
      payload[1] = tcp
      payload.writeUInt32LE(allStates, 4)
      // Message by message: a host may have a million sockets.
      askKernel(protocols.sockDiag, { type: dumpByFamily, payload }, socket => {
        const state = socket.u8(1)
        const slot = state < states.length ? state : 0
        counts[slot] = counts[slot]! + 1
        received += socket.u32(56)
        sent += socket.u32(60)
      })
    }
    return {
      collect(readings) {
        counts.fill(0)
        received = sent = 0
        count(inet)
        if (host.proc.exists('net/tcp6')) count(inet6)
        let total = 0
        for (const [state, number] of counts.entries()) {
          total += number
          if (number > 0) readings.set(connections, number, states[state]!)
        }
        if (total === 0) return
        readings.set(queues, received, 'rx_queued_bytes')
        readings.set(queues, sent, 'tx_queued_bytes')
      },
    }
  },
})
