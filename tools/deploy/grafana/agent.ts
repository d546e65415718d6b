// The agent itself: delivery of the collected data, and its cost.
import { balanceRows } from './agent-balance.ts'
import { captureRow } from './agent-capture.ts'
import { costRows } from './agent-cost.ts'
import { exportRows } from './agent-export.ts'
import { type Dashboard, queryVariable, sourceVariable } from './dashboard.ts'

/** Selects agents; all by default. */
export const agentVariables: readonly object[] = [
  sourceVariable('datasource', 'Data source', 'prometheus'),
  queryVariable('job', 'Job', 'label_values(svc_config_info, job)', { multi: true }),
  queryVariable('instance', 'Instance', 'label_values(svc_config_info{job=~"$job"}, instance)', {
    multi: true,
  }),
]

export const agent: Dashboard = {
  uid: 'svc-agent',
  title: 'svc / Agent',
  description:
    "Collected, sent, queued and lost data, and svc's resource use: the agent's own metrics, from its management API at :19090.",
  variables: agentVariables,
  rows: [...balanceRows, ...exportRows, captureRow, ...costRows],
}
