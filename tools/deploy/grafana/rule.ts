// Rules in Prometheus format ("Recording rules", "Alerting rules").

export interface Recording {
  readonly record: string
  readonly expr: string
  readonly labels?: Readonly<Record<string, string>>
}

export interface Alert {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: { readonly severity: 'warning' | 'critical' }
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>
}

export interface RuleGroup {
  readonly name: string
  readonly rules: readonly (Recording | Alert)[]
}

/** Template of a number in an alert's text: `4h 2m`, `12.5%`, `3.2k`. */
export const value = {
  plain: '{{ $value | humanize }}',
  percent: '{{ $value | humanizePercentage }}',
  duration: '{{ $value | humanizeDuration }}',
  bytes: '{{ $value | humanize1024 }}B',
}

export interface AlertText {
  /** One line, including the place. */
  readonly summary: string
  /** Its meaning, and the first step. */
  readonly description: string
}

/** `lasts`: how long it must be true. docs/grafana.md has the fix, below a heading with the alert's name. */
export function alert(
  name: string,
  severity: 'warning' | 'critical',
  lasts: string,
  expr: string,
  { summary, description }: AlertText,
): Alert {
  const runbook = `docs/grafana.md#${name.toLowerCase()}`
  return {
    alert: name,
    expr,
    for: lasts,
    labels: { severity },
    annotations: { summary, description, runbook_url: runbook },
  }
}
