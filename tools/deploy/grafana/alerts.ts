// Alerts: few, and each requires an action.
import { agentAlerts } from './agent-alerts.ts'
import { hostAlerts } from './host-alerts.ts'
import { alert, type RuleGroup, value } from './rule.ts'

const services: RuleGroup = {
  name: 'svc-service',
  rules: [
    alert(
      'ServiceErrorsHigh',
      'warning',
      '10m',
      'service:http_server_errors:ratio_rate5m > 0.05 and service:http_server_requests:rate5m > 0.1',
      {
        summary: '{{ or $labels.service_name $labels.job }} has many errors',
        description: `${value.percent} of its requests failed.`,
      },
    ),
    alert(
      'ServiceSlow',
      'warning',
      '15m',
      'service:http_server_duration_seconds:p95_5m > 2.5 and service:http_server_requests:rate5m > 0.1',
      {
        summary: '{{ or $labels.service_name $labels.job }} is slow',
        description: `One request in twenty takes longer than ${value.duration}.`,
      },
    ),
  ],
}

export const alertGroups: readonly RuleGroup[] = [agentAlerts, hostAlerts, services]
