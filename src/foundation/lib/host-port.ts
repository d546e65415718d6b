/** `host:port`, with an IPv6 address in brackets. */
export function hostPort(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** The host of a URL, without the brackets of an IPv6 address. */
export function bareHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}
