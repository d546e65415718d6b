/** Where a receiver of OTLP is reached. */
export interface Endpoint {
  readonly host: string
  readonly port: number
  readonly secure: boolean
  /** Path of a URL, without a slash at its end; '' for none. gRPC knows none. */
  readonly path: string
}

/**
 * Reads `host`, `host:port`, `[ipv6]:port`, or any of them behind `http://`, `https://` or `dns:///`. Without a
 * port it is 4317, the one of OTLP over gRPC, and 443 behind `https://`. Throws an `Error` that tells what is wrong and
 * repeats no credentials.
 */
export function parseEndpoint(endpoint: string, insecure: boolean): Endpoint {
  const fault = endpointFault(endpoint)
  if (fault !== '') {
    const shown = endpoint.replace(/[^/]*@/, '[REDACTED]@')
    throw new Error(`cannot use the OTLP endpoint "${shown}": ${fault}; write host:port or https://host:port`)
  }
  const { scheme, host, port, path } = split(endpoint)!
  return {
    host,
    port: port === '' ? (scheme === 'https' ? 443 : 4317) : Number(port),
    secure: scheme === 'https' || (scheme !== 'http' && !insecure),
    path,
  }
}

/** Why a text is no endpoint; '' when it is one. */
export function endpointFault(endpoint: string): string {
  if (hasCredentials(endpoint)) return 'a user name or password in it would show up in logs'
  const parts = split(endpoint)
  if (parts === undefined) return 'it is no host with a port'
  const { scheme, port } = parts
  if (!['', 'http', 'https', 'dns'].includes(scheme)) return `the scheme ${scheme} is not known`
  return port !== '' && (Number(port) < 1 || Number(port) > 65535) ? `${port} is no port` : ''
}

/** Whether there is something before an `@` (RFC 3986, section 3.2.1, userinfo). */
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
  // What follows `dns://` up to the next slash is the resolver to ask (gRPC name resolution).
  const parts = form.exec(endpoint.trim().replace(/^dns:\/\/[^/]*\//i, 'dns://'))
  if (parts === null) return undefined
  const [, scheme = '', ipv6, name, port = '', path = ''] = parts
  // Only a URL has a path.
  if (path !== '' && !/^https?$/i.test(scheme)) return undefined
  return { scheme: scheme.toLowerCase(), host: ipv6 ?? name!, port, path: path.replace(/\/+$/, '') }
}
