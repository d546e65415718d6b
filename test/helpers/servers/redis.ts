import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, listening } from '../program.ts'

const program = '/usr/bin/redis-server'

export const withoutRedis: string | false =
  existsSync(program) && existsSync('/usr/bin/redis-cli') ? false : 'Redis is not there (redis-server)'

export interface RedisServer {
  readonly port: number
  close(): Promise<void>
}

/** Starts a Redis server that writes nothing down. `more` is added to its command line. */
export async function startRedis(...more: string[]): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-redis-'))
  const port = await freePort()
  const options = ['--bind', '127.0.0.1', '--port', `${port}`, '--save', '', '--dir', directory, ...more]
  const child = spawn(program, options, { stdio: 'ignore' })
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise(resolve => child.once('close', resolve))
      child.kill('SIGKILL')
      await ended
    }
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await listening(port)
  } catch (error) {
    await close()
    throw error
  }
  return { port, close }
}
