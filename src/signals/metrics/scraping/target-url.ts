import { addressLabel, metricsPathLabel, paramPrefix, schemeLabel } from './label-names.ts'
import type { ScrapeJob } from './scrape-job.ts'

/** Maximum length of a socket path, in bytes (unix(7), `sun_path` without its terminator). */
const longestSocketPath = 107

const hostAndPort = /^(?:\[[0-9A-Fa-f:.]+\]|[^\s\0-\x1f\x7f:/?#@[\]\\%"<>^`{|}]+)(?::(\d{1,5}))?$/

/**
 * Reason why an address is invalid, with a hint; '' if it is valid: `host`, `host:port`, `[ipv6]:port` as in
 * Prometheus, and `unix:/path/of/socket`.
 */
export function addressFault(address: string, scheme: string): string {
  if (address === '') return 'no __address__; set it in the source or by relabelling'
  // The part before the @ of a URL may be a password.
  const shown = `__address__ ${JSON.stringify(address.replace(/^.*@/s, '[REDACTED]@').slice(0, 128))}`
  if (scheme !== 'http' && scheme !== 'https')
    return `unknown __scheme__ ${JSON.stringify(scheme.slice(0, 32))}; use http or https`
  if (address.startsWith('unix:')) return socketFault(address.slice('unix:'.length), shown, scheme)
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(address))
    return `${shown} is a URL; use host:port, and set __scheme__ and __metrics_path__ for the rest`
  if (address.includes('/')) return `${shown} has a path; set it as __metrics_path__`
  const match = hostAndPort.exec(address)
  if (match === null) return `${shown} is not host:port; write IPv6 as [::1]:port`
  const port = match[1] === undefined ? 1 : Number(match[1])
  return port >= 1 && port <= 65_535 ? '' : `${shown} has a port outside 1 to 65535`
}

/** A colon would end the path in the URL. */
function socketFault(path: string, shown: string, scheme: string): string {
  if (scheme === 'https') return `${shown} is a socket, which supports only http; set __scheme__ to http`
  if (!/^\/[^:\0]+$/.test(path))
    return `${shown} is not a socket; use unix:/path, without a colon in the path`
  return Buffer.byteLength(path) <= longestSocketPath
    ? ''
    : `${shown} is longer than a socket path can be (${longestSocketPath} bytes)`
}

/**
 * URL to scrape: scheme, address and path from the labels, and the job's parameters, whose first values labels replace.
 * In the form of Prometheus (`url.URL.String` and `url.Values.Encode` of Go).
 */
export function targetUrl(job: ScrapeJob, labels: ReadonlyMap<string, string>): string {
  const address = labels.get(addressLabel)!
  const path = labels.get(metricsPathLabel) ?? ''
  const written = escapedPath(path === '' || path.startsWith('/') ? path : `/${path}`)
  const query = queryOf(job, labels)
  const tail = written + (query === '' ? '' : `?${query}`)
  if (address.startsWith('unix:')) return `${address}:${tail.startsWith('/') ? tail : `/${tail}`}`
  return `${labels.get(schemeLabel)}://${address}${tail}`
}

function queryOf(job: ScrapeJob, labels: ReadonlyMap<string, string>): string {
  const params = new Map(Object.entries(job.params).map(([name, values]) => [name, [...values]]))
  for (const [label, value] of labels) {
    if (!label.startsWith(paramPrefix)) continue
    const name = label.slice(paramPrefix.length)
    const values = params.get(name)
    if (values === undefined || values.length === 0) params.set(name, [value])
    else values[0] = value
  }
  return [...params.keys()]
    .sort()
    .flatMap(name => params.get(name)!.map(value => `${queryEscaped(name)}=${queryEscaped(value)}`))
    .join('&')
}

/** Characters that Go does not escape in a path, but JavaScript does. */
const inPaths: Readonly<Record<string, string>> = {
  '%24': '$',
  '%26': '&',
  '%2B': '+',
  '%2C': ',',
  '%2F': '/',
  '%3A': ':',
  '%3B': ';',
  '%3D': '=',
  '%40': '@',
}

function escapedPath(path: string): string {
  if (/^[\w/.~-]*$/.test(path)) return path
  return escaped(path).replace(/%(?:2[46BCF]|3[ABD]|40)/g, code => inPaths[code]!)
}

function queryEscaped(text: string): string {
  return escaped(text).replaceAll('%20', '+')
}

/** Escapes all but letters, digits and `-_.~`. */
function escaped(text: string): string {
  const wellFormed = text.replace(/\p{Surrogate}/gu, '\ufffd')
  return encodeURIComponent(wellFormed).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
