import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { errorText } from '../../foundation/lib/logger.ts'
import type { Finding } from '../../kernel/need.ts'
import { check } from './check.ts'

const home = {
  systemd: 'RuntimeDirectory=svc',
  container: 'docker run --tmpfs=/run/svc',
  kubernetes: 'volumes: [{name: run, emptyDir: {medium: Memory}}], mounted at /run/svc',
  config: 'self_telemetry.admin_socket: /var/lib/svc/svc.sock',
}

type Faults = 'not_writable' | 'read_only' | 'too_long' | 'off'

export const adminSocket = check({
  name: 'admin socket',
  group: 'commands',
  summary:
    'The agent can create its socket for commands on this host; one with another name is created there and removed',
  impact: 'commands without a token: local commands use the network address',
  faults: {
    not_writable: {
      state: 'limited',
      what: 'the user of svc may not write to the directory of `self_telemetry.admin_socket`',
      hints: { any: 'install -d -o svc -m 0750 /run/svc', ...home },
    },
    read_only: {
      state: 'limited',
      what: 'the directory is on a read-only file system',
      hints: home,
    },
    too_long: {
      state: 'limited',
      what: 'the path is longer than 107 bytes, the limit for Unix sockets',
      hints: { config: 'self_telemetry.admin_socket: /run/svc/svc.sock' },
    },
    off: {
      state: 'note',
      what: 'no path is set',
      hints: { config: 'self_telemetry.admin_socket: /run/svc/svc.sock' },
    },
  },
  try: async ({ loaded: { config }, timeoutMs }) => {
    const { enabled, admin_socket: path } = config.self_telemetry
    return enabled ? [await trySocket(path, timeoutMs)] : []
  },
})

const longestPath = 107

async function trySocket(path: string, timeoutMs: number): Promise<Finding<Faults>> {
  if (path === '') return { fault: 'off', detail: 'self_telemetry.admin_socket is empty' }
  if (Buffer.byteLength(path) > longestPath)
    return { fault: 'too_long', detail: `${path} has ${Buffer.byteLength(path)} bytes` }
  if (await answers(path, timeoutMs)) return { ok: `a running agent answers at ${path}` }
  const directory = dirname(path)
  try {
    if (existsSync(directory)) await bind(join(directory, `.${process.pid}`))
    else accessSync(above(directory), constants.W_OK | constants.X_OK)
    return { ok: `${path} can be created` }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return {
      fault: code === 'EROFS' ? 'read_only' : 'not_writable',
      detail: `cannot create a socket in ${directory}: ${errorText(error)}`,
    }
  }
}

function answers(path: string, timeoutMs: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ path, timeout: timeoutMs })
    const end = (answered: boolean) => {
      socket.destroy()
      resolve(answered)
    }
    socket.once('connect', () => end(true))
    socket.once('timeout', () => end(false))
    socket.once('error', () => end(false))
  })
}

/** Binds and closes, which removes the file. */
function bind(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(path, () => server.close(() => resolve()))
  })
}

/** The nearest directory that exists. */
function above(directory: string): string {
  const up = dirname(directory)
  return up === directory || (existsSync(up) && statSync(up).isDirectory()) ? up : above(up)
}
