import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, listening } from '../program.ts'

const program = '/usr/sbin/mosquitto'

export const withoutMosquitto: string | false =
  existsSync(program) && existsSync('/usr/bin/mosquitto_pub')
    ? false
    : 'Mosquitto is not there (mosquitto, mosquitto-clients)'

export interface Mosquitto {
  readonly port: number
  close(): Promise<void>
}

/** Starts Mosquitto. `acl`: lines of its list of rights; without them everybody may do everything. */
export async function startMosquitto(acl: readonly string[] = []): Promise<Mosquitto> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-mosquitto-'))
  const port = await freePort()
  const lines = [`listener ${port} 127.0.0.1`, 'allow_anonymous true', 'persistence false', 'user root']
  if (acl.length > 0) {
    writeFileSync(join(directory, 'acl'), acl.map(line => `${line}\n`).join(''))
    lines.push(`acl_file ${join(directory, 'acl')}`)
  }
  writeFileSync(join(directory, 'conf'), lines.map(line => `${line}\n`).join(''))
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
