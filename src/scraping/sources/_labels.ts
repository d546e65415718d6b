/** A name of Docker or Kubernetes as part of a label's name, as Prometheus makes it (strutil.SanitizeLabelName). */
export function labelPart(name: string): string {
  return name.replace(/[^a-zA-Z0-9_]/gu, '_')
}

/** `host:port`, with brackets around an address of IPv6. */
export function hostPort(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
