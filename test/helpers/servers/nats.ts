import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, listening } from '../program.ts'

const program = '/usr/sbin/nats-server'

export const withoutNats: string | false = existsSync(program)
  ? false
  : 'the NATS server is not there (nats-server)'

export interface Nats {
  readonly port: number
  close(): Promise<void>
}

/** Starts a NATS server with JetStream. `more` is added to its configuration. */
export async function startNats(more = ''): Promise<Nats> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-nats-'))
  const port = await freePort()
  writeFileSync(
    join(directory, 'conf'),
    `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${directory}/store" }\n${more}\n`,
  )
  const child = spawn(program, ['-c', join(directory, 'conf')], { stdio: 'ignore' })
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
