/** Where a Docker daemon listens: at a Unix socket, or at a port. */
export type DockerAddress =
  | { readonly path: string }
  | {
      readonly host: string
      /** 0: not specified. */
      readonly port: number
      readonly scheme: 'tcp' | 'http' | 'https'
    }

/** Why an address is invalid, and what to write instead. */
export interface AddressFault {
  readonly reason: string
  readonly instead: string
}

const place = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:[\]/@?#]*))(?::(\d{1,5}))?\/?$/
const instead = 'unix:///run/docker.sock or tcp://HOST:PORT'

/** Parses the argument of Docker's `--host` (docker(1)): `unix://…`, `tcp://…`, `http(s)://…`, a path, `host:port`. */
export function parseDockerAddress(address: string): DockerAddress | AddressFault {
  const [, scheme = '', rest = ''] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*)$/is.exec(address)!
  if ((scheme === '' || scheme === 'unix') && rest.startsWith('/')) return { path: rest }
  if (scheme === 'unix') return { reason: 'the path must be absolute', instead: 'unix:///run/docker.sock' }
  if (scheme === 'ssh')
    return {
      reason: 'svc does not support ssh',
      instead:
        'unix:///run/svc/far.sock, and forward the socket there: ssh -N -L /run/svc/far.sock:/run/docker.sock HOST',
    }
  if (scheme === 'npipe') return { reason: 'npipe exists only on Windows', instead }
  const known = scheme === '' ? 'tcp' : scheme
  if (known !== 'tcp' && known !== 'http' && known !== 'https')
    return { reason: `svc does not support the scheme ${scheme.slice(0, 32)}`, instead }
  if (rest.includes('@')) return { reason: 'a user name or password in it would show up in logs', instead }
  const [whole, address6, name = '', digits = ''] = place.exec(rest) ?? []
  const port = Number(digits)
  if (
    whole === undefined ||
    port > 65_535 ||
    (scheme === '' && digits === '') ||
    (digits !== '' && port === 0)
  )
    return { reason: 'not a Unix socket or a host with a port', instead }
  return { host: address6 ?? (name || 'localhost'), port, scheme: known }
}

/** The address without credentials, for display. */
export function shownDockerAddress(address: string): string {
  return address.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1[REDACTED]@').slice(0, 256)
}
