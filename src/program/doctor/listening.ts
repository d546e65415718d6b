import { createServer } from 'node:net'
import { type ListenAddress, parseListenAddress } from '../../foundation/lib/listen-address.ts'
import { portHolder } from '../../foundation/lib/port-holder.ts'
import type { Finding } from '../../kernel/need.ts'

/** Briefly binds a socket at the configured address. `isSvc`: whether svc answers there. */
export async function tryListen(
  listen: string,
  isSvc: () => Promise<boolean>,
): Promise<Finding<'taken' | 'privileged' | 'foreign' | 'unusable'>> {
  const wanted = parseListenAddress(listen)
  if (wanted === undefined) return { fault: 'unusable', detail: `"${listen}" is not a valid listen address` }
  const error = await listenError(wanted)
  if (error === undefined) return { ok: `${listen} is free` }
  const failed = `cannot listen on ${listen}`
  switch (error.code) {
    case 'EADDRINUSE': {
      const holder = portHolder(wanted.port)
      if (holder?.name === 'svc') return { ok: `${listen} is in use by the running svc (pid ${holder.pid})` }
      if (holder === undefined && (await isSvc()))
        return { ok: `${listen} is in use by another user’s process that answers like svc` }
      const who =
        holder === undefined ? 'a process that this user cannot see' : `${holder.name} (pid ${holder.pid})`
      return { fault: 'taken', detail: `${failed}: the port is in use by ${who}` }
    }
    case 'EACCES':
      return { fault: 'privileged', detail: `${failed}: not permitted` }
    case 'EADDRNOTAVAIL':
      return { fault: 'foreign', detail: `${failed}: the address does not belong to this host` }
    default:
      return { fault: 'unusable', detail: `${failed}: ${error.message}` }
  }
}

function listenError(wanted: ListenAddress): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise(resolve => {
    const server = createServer(socket => socket.destroy())
    server.once('error', resolve)
    server.listen(wanted, () => server.close(() => resolve(undefined)))
  })
}
