// The host dashboard: familiar to users of "Node Exporter Full", with the same variables and row names.
import { type Dashboard, queryVariable, sourceVariable } from './dashboard.ts'
import { memoryRows } from './host-memory.ts'
import { hostOverview } from './host-overview.ts'
import { protocolRows } from './host-protocols.ts'
import { resourceRow } from './host-resources.ts'
import { hostStorage } from './host-storage.ts'
import { systemRows } from './host-system.ts'
import { taskRows } from './host-tasks.ts'
import { trafficRow } from './host-traffic.ts'

export const host: Dashboard = {
  uid: 'svc-host',
  title: 'svc / Host',
  description: 'CPU, memory, disks, network and clock of one host, from the page that svc serves at :9100.',
  variables: [
    sourceVariable('datasource', 'Data source', 'prometheus'),
    queryVariable('job', 'Job', 'label_values(node_uname_info, job)'),
    queryVariable('nodename', 'Nodename', 'label_values(node_uname_info{job="$job"}, nodename)'),
    queryVariable(
      'node',
      'Instance',
      'label_values(node_uname_info{job="$job", nodename="$nodename"}, instance)',
    ),
  ],
  rows: [
    ...hostOverview,
    resourceRow,
    ...memoryRows,
    ...taskRows,
    ...systemRows,
    ...hostStorage,
    trafficRow,
    ...protocolRows,
  ],
}
