/** Address of an OTLP receiver. */
export interface Endpoint {
  readonly host: string
  readonly port: number
  readonly secure: boolean
  /** Path of a URL, without a trailing slash; '' for none. gRPC has none. */
  readonly path: string
}

/** Default OTLP ports: of a bare host, and of URLs, which for HTTP have a browser's defaults. */
const defaultPorts = {
  grpc: { '': 4317, dns: 4317, http: 4317, https: 443 },
  http: { '': 4318, dns: 4318, http: 80, https: 443 },
} as const

/**
 * Parses `host`, `host:port`, `[ipv6]:port`, or any of them after `http://`, `https://` or `dns:///`. Throws an `Error`
 * that names the fault without credentials or query.
 */
export function parseEndpoint(
  endpoint: string,
  insecure: boolean,
  protocol: 'grpc' | 'http' = 'grpc',
): Endpoint {
  const fault = endpointFault(endpoint)
  if (fault !== '') {
    // Up to the last @, since a password may contain any character, and without the query, which may contain a token.
    const shown = endpoint
      .replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/i, '$1[REDACTED]@')
      .replace(/[?#].*$/, '?[REDACTED]')
    throw new Error(`cannot use the OTLP endpoint "${shown}": ${fault}; write host:port or https://host:port`)
  }
  const { scheme, host, port, path } = split(endpoint)!
  const known = scheme as keyof (typeof defaultPorts)['grpc']
  return {
    host,
    port: port === '' ? defaultPorts[protocol][known] : Number(port),
    secure: scheme === 'https' || (scheme !== 'http' && !insecure),
    path: path.replace(/\/+$/, ''),
  }
}

/**
 * The path of an HTTP request: for a base endpoint its own path followed by `path`, for the URL of one signal exactly
 * its path, `/` if it has none (OTLP exporter specification, "Endpoint URLs for OTLP/HTTP"). A bare `host:port` is no
 * URL and always gets `path`.
 */
export function requestPath(endpoint: string, ownEndpoint: boolean, path: string): string {
  const { scheme = '', path: written = '' } = split(endpoint) ?? {}
  const verbatim = ownEndpoint && (scheme === 'http' || scheme === 'https')
  return verbatim ? written || '/' : written.replace(/\/+$/, '') + path
}

/** Why a text is no endpoint; '' if it is one. */
export function endpointFault(endpoint: string): string {
  if (hasCredentials(endpoint)) return 'a user name or password in it would show up in logs'
  const parts = split(endpoint)
  if (parts === undefined) return 'not a host with a port'
  const { scheme, port } = parts
  if (!['', 'http', 'https', 'dns'].includes(scheme)) return `the scheme ${scheme} is not supported`
  return port !== '' && (Number(port) < 1 || Number(port) > 65535) ? `${port} is not a valid port` : ''
}

/** True if there is an `@` (RFC 3986, section 3.2.1, userinfo). */
export function hasCredentials(endpoint: string): boolean {
  return endpoint.includes('@')
}

const form =
  /^(?:([a-z][a-z0-9+.-]*):\/\/)?(?:\[([0-9a-f:.]+)\]|([^:/@[\]?#\s,]+))(?::(\d+))?((?:\/[^?#\s]*)?)$/i

function split(
  endpoint: string,
):
  | { readonly scheme: string; readonly host: string; readonly port: string; readonly path: string }
  | undefined {
  // The text between `dns://` and the next slash is the resolver (gRPC name resolution).
  const parts = form.exec(endpoint.trim().replace(/^dns:\/\/[^/]*\//i, 'dns://'))
  if (parts === null) return undefined
  const [, scheme = '', ipv6, name, port = '', path = ''] = parts
  // Only a URL has a path.
  if (path !== '' && !/^https?$/i.test(scheme)) return undefined
  return { scheme: scheme.toLowerCase(), host: ipv6 ?? name!, port, path }
}
