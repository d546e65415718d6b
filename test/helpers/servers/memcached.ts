import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { freePort, listening } from '../program.ts'

const program = '/usr/bin/memcached'

export const withoutMemcached: string | false = existsSync(program)
  ? false
  : 'memcached is not there (memcached)'

export interface MemcachedServer {
  readonly port: number
  close(): Promise<void>
}

/** Starts a memcached, which keeps nothing on disk. */
export async function startMemcached(): Promise<MemcachedServer> {
  const port = await freePort()
  const options = ['-l', '127.0.0.1', '-p', `${port}`, '-U', '0', '-u', 'nobody', '-m', '16']
  const child = spawn(program, options, { stdio: 'ignore' })
  const close = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise(resolve => child.once('close', resolve))
    child.kill('SIGKILL')
    await ended
  }
  try {
    await listening(port)
  } catch (error) {
    await close()
    throw error
  }
  return { port, close }
}
