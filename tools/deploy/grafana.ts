// Grafana dashboards and Prometheus rules: all names in them are declared by the program.
import { stringify } from 'yaml'
import type { Generated } from '../generated.ts'
import { agent } from './grafana/agent.ts'
import { alertGroups } from './grafana/alerts.ts'
import { dashboardText } from './grafana/dashboard.ts'
import { host } from './grafana/host.ts'
import { profiles } from './grafana/profiles.ts'
import { recordingGroups } from './grafana/recording.ts'
import type { RuleGroup } from './grafana/rule.ts'
import { services } from './grafana/services.ts'

export const dashboards = { host, services, profiles, agent }

export const grafanaFiles: readonly Generated[] = [
  ...Object.entries(dashboards).map(([name, dashboard]) => ({
    file: `deploy/grafana/${name}.json`,
    text: () => dashboardText(dashboard),
  })),
  { file: 'deploy/grafana/recording.yaml', text: () => rulesText(recordingGroups) },
  { file: 'deploy/grafana/alerts.yaml', text: () => rulesText(alertGroups) },
]

function rulesText(groups: readonly RuleGroup[]): string {
  return `# Written by tools/gen-deploy.ts; do not edit.\n${stringify({ groups }, { lineWidth: 0 })}`
}
