// The agent itself: whether all that it collected arrives, and what that costs.
import { balanceRows } from './agent-balance.ts'
import { captureRow } from './agent-capture.ts'
import { costRows } from './agent-cost.ts'
import { exportRows } from './agent-export.ts'
import { type Dashboard, queryVariable, sourceVariable } from './dashboard.ts'

/** Of the agents that are chosen; all at first. */
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
    "What svc collects, sends, queues and loses, and what it costs: the agent's own metrics, from its management API at :19090.",
  variables: agentVariables,
  rows: [...balanceRows, ...exportRows, captureRow, ...costRows],
}
