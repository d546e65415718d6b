/** What a process was told of OpenTelemetry at its start. */
export interface Environment {
  /** OTEL_SERVICE_NAME, which wins over an attribute of the same meaning. */
  readonly serviceName: string
  readonly attributes: readonly (readonly [string, string])[]
}

export const emptyEnvironment: Environment = { serviceName: '', attributes: [] }

const maxAttributes = 64
const maxValueLength = 1_024

/** Takes what OpenTelemetry defines, and nothing else, out of a process's environment (/proc/PID/environ). */
export function readEnvironment(environ: string): Environment {
  if (!environ.includes('OTEL_')) return emptyEnvironment
  let name = ''
  let attributes: (readonly [string, string])[] = []
  for (const variable of environ.split('\0')) {
    if (variable.startsWith('OTEL_SERVICE_NAME='))
      name = bounded(variable.slice('OTEL_SERVICE_NAME='.length).trim())
    else if (variable.startsWith('OTEL_RESOURCE_ATTRIBUTES='))
      attributes = parseResourceAttributes(variable.slice('OTEL_RESOURCE_ATTRIBUTES='.length))
  }
  return { serviceName: name, attributes }
}

/** What tells of the process itself is known better here than by whoever else names it. */
export function isOwn(key: string): boolean {
  return /^(process|telemetry\.sdk)\./.test(key)
}

/** The beginning of a text, copied: a part of a text keeps the whole of it in memory. */
export function bounded(value: string): string {
  return Buffer.from(value.length > maxValueLength ? value.slice(0, maxValueLength) : value).toString()
}

/**
 * Reads `key=value,key=value`, values percent-encoded (OpenTelemetry resource SDK). As the specification asks, nothing of
 * a list with a fault in it is taken.
 */
function parseResourceAttributes(text: string): (readonly [string, string])[] {
  const attributes: (readonly [string, string])[] = []
  for (const pair of text.split(',', maxAttributes)) {
    if (pair.trim() === '') continue
    const sign = pair.indexOf('=')
    const key = pair.slice(0, Math.max(0, sign)).trim()
    if (key === '') return []
    if (isOwn(key)) continue
    try {
      const value = bounded(decodeURIComponent(pair.slice(sign + 1).trim()))
      if (value !== '') attributes.push([bounded(key), value])
    } catch {
      // A percent sign that encodes nothing.
      return []
    }
  }
  return attributes
}
