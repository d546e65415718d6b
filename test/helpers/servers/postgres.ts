import { execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, until } from '../program.ts'
import { accountOf } from './account.ts'

const home = '/usr/lib/postgresql'
const programs = existsSync(home)
  ? readdirSync(home)
      .map(version => join(home, version, 'bin'))
      .find(folder => existsSync(join(folder, 'initdb')))
  : undefined

export const withoutPostgres: string | false =
  programs === undefined ? 'PostgreSQL is not there (postgresql)' : false

/** The database and its user have this name, and there is no password. */
export const postgresName = 'shop'

export interface Postgres {
  readonly port: number
  /** A program that came with the server. */
  program(name: 'psql' | 'pgbench'): string
  close(): Promise<void>
}

/** Starts PostgreSQL with a database of its own on 127.0.0.1. */
export async function startPostgres(): Promise<Postgres> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-postgres-'))
  const account = accountOf('postgres')
  const options = { cwd: directory, ...account }
  if (account !== undefined) chownSync(directory, account.uid, account.gid)
  const data = join(directory, 'data')
  const quick = ['--no-sync', '--no-locale', '--encoding=UTF8', '--auth=trust']
  execFileSync(join(programs!, 'initdb'), ['-D', data, '-U', postgresName, ...quick], {
    ...options,
    stdio: 'pipe',
  })
  const port = await freePort()
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${directory}`,
    'fsync=off',
    'shared_buffers=16MB',
    'max_wal_senders=0',
    'autovacuum=off',
  ]
  const child = spawn(
    join(programs!, 'postgres'),
    ['-D', data, '-p', String(port), ...settings.flatMap(setting => ['-c', setting])],
    { ...options, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-10_000)
  })
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise(resolve => child.once('close', resolve))
      child.kill('SIGINT') // sessions are ended at once, and everything is put away
      await ended
    }
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await until(
      () => `PostgreSQL is ready:\n${said}`,
      30_000,
      () => {
        if (child.exitCode !== null) throw new Error(`PostgreSQL ended:\n${said}`)
        return said.includes('ready to accept connections')
      },
    )
    const where = ['-h', '127.0.0.1', '-p', String(port), '-U', postgresName]
    execFileSync(join(programs!, 'createdb'), [...where, postgresName], {
      env: { ...process.env, PGSSLMODE: 'disable' },
      stdio: 'pipe',
    })
  } catch (error) {
    await close()
    throw error
  }
  return { port, program: name => join(programs!, name), close }
}
