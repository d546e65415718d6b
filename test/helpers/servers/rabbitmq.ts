import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, until } from '../program.ts'

const home = '/usr/lib/rabbitmq/lib'
const script = existsSync(home)
  ? readdirSync(home)
      .map(version => join(home, version, 'sbin/rabbitmq-server'))
      .find(existsSync)
  : undefined

export const withoutRabbitmq: string | false =
  script !== undefined && existsSync('/usr/bin/epmd') ? false : 'RabbitMQ is not there (rabbitmq-server)'

export interface Rabbitmq {
  readonly port: number
  close(): Promise<void>
}

/** Starts RabbitMQ with a folder, a name and a port mapper of its own. */
export async function startRabbitmq(): Promise<Rabbitmq> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-rabbitmq-'))
  const [port, mapper, distribution] = [await freePort(), await freePort(), await freePort()]
  writeFileSync(join(directory, 'plugins'), '[].\n')
  writeFileSync(join(directory, 'rabbitmq.conf'), `listeners.tcp.default = 127.0.0.1:${port}\n`)
  // Erlang would start the mapper as a daemon that outlives it.
  const epmd = spawn('/usr/bin/epmd', ['-port', String(mapper), '-address', '127.0.0.1'], { stdio: 'ignore' })
  const env = {
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: directory,
    ERL_EPMD_PORT: String(mapper),
    RABBITMQ_NODENAME: `svc${port}@localhost`,
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: join(directory, 'mnesia'),
    RABBITMQ_LOG_BASE: join(directory, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_ENABLED_PLUGINS_FILE: join(directory, 'plugins'),
    RABBITMQ_CONFIG_FILE: join(directory, 'rabbitmq.conf'),
    RABBITMQ_CONF_ENV_FILE: join(directory, 'none'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 1:1 +sbwt none',
  }
  const server = spawn(script!, [], {
    env,
    cwd: directory,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let said = ''
  for (const stream of [server.stdout!, server.stderr!])
    stream.setEncoding('latin1').on('data', (text: string) => {
      said = (said + text).slice(-20_000)
    })
  const close = async () => {
    // The script waits for the machine, which holds the group's pipes: the group ends as a whole.
    await ended(server, () => process.kill(-server.pid!, 'SIGKILL'))
    await ended(epmd, () => epmd.kill('SIGKILL'))
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await until(
      () => `RabbitMQ is ready:\n${said}`,
      60_000,
      () => {
        if (server.exitCode !== null) throw new Error(`RabbitMQ ended:\n${said}`)
        return said.includes('Server startup complete')
      },
    )
  } catch (error) {
    await close()
    throw error
  }
  return { port, close }
}

async function ended(child: ChildProcess, kill: () => void): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const end = new Promise(resolve => child.once('close', resolve))
  kill()
  await end
}
