import type { Target } from '../../signals/metrics/scraping/target.ts'

/** Replaces a secret, as in the displayed configuration. */
const hidden = '[REDACTED]'
const paramPrefix = '__param_'

/** The URL of a target for display: configured parameters are secret and stay hidden. */
export function shownUrl({ url, job }: Pick<Target, 'url' | 'job'>): string {
  const at = url.indexOf('?')
  if (at < 0) return url
  const secret = new Set(Object.keys(job.params).map(name => String(new URLSearchParams([[name, '']]))))
  const shown = url
    .slice(at + 1)
    .split('&')
    .map(pair => {
      const name = pair.slice(0, pair.indexOf('=') + 1)
      return secret.has(String(new URLSearchParams(name))) ? name + hidden : pair
    })
  return `${url.slice(0, at)}?${shown.join('&')}`
}

/** Discovery labels for display. They include the parameters of the job. */
export function shownLabels(labels: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries(
    [...labels].map(([name, value]) => [name, name.startsWith(paramPrefix) ? hidden : value]),
  )
}
