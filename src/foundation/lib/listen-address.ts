/** A listen address. Without a host: all addresses, IPv6 and IPv4. */
export interface ListenAddress {
  readonly host?: string
  readonly port: number
}

const form = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:[\]]*)):(\d{1,5})$/

/** Parses `:19090`, `127.0.0.1:0`, `[::]:19090` or `localhost:80`; undefined if invalid. Port 0: any free one. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const parts = form.exec(text.trim())
  if (!parts) return undefined
  const port = Number(parts[3])
  if (port > 65535) return undefined
  const host = parts[1] ?? parts[2]
  return host ? { host, port } : { port }
}
