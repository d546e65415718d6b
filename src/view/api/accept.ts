// Content that a client accepts (RFC 9110, section 12.5).

export const openMetricsText = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** Whether an Accept-Encoding header allows gzip. */
export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false
  let weight: number | undefined
  let rest = 0
  for (const coding of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = coding.split(';').map(part => part.trim())
    if (name === 'gzip' || name === 'x-gzip') weight = Math.max(weight ?? 0, weightOf(parameters))
    else if (name === '*') rest = weightOf(parameters)
  }
  return (weight ?? rest) > 0
}

/** True when an Accept header ranks OpenMetrics 1.0 at least as high as plain text. */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  if (!accept?.includes('application/openmetrics-text')) return false
  let openMetrics = 0
  let plain = 0
  for (const range of accept.split(',')) {
    const [type, ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    const weight = weightOf(parameters)
    const version = parameters.find(parameter => parameter.startsWith('version='))?.slice(8) ?? '1.0.0'
    if (type === 'application/openmetrics-text' && version === '1.0.0')
      openMetrics = Math.max(openMetrics, weight)
    if (type === 'text/plain') plain = Math.max(plain, weight)
  }
  return openMetrics > 0 && openMetrics >= plain
}

function weightOf(parameters: readonly string[]): number {
  return Number(parameters.find(parameter => parameter.startsWith('q='))?.slice(2) ?? 1)
}
