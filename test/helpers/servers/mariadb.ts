import { execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, until } from '../program.ts'
import { accountOf } from './account.ts'

const server = '/usr/sbin/mariadbd'
const installer = '/usr/bin/mariadb-install-db'

export const withoutMariadb: string | false =
  existsSync(server) && existsSync(installer) ? false : 'MariaDB is not there (mariadb-server)'

/** The database and its user have this name. */
export const mariadbName = 'shop'
export const mariadbPassword = 'shop-password'

export interface Mariadb {
  readonly port: number
  /** Arguments of the command line client. */
  readonly client: readonly string[]
  close(): Promise<void>
}

/** Starts MariaDB with a database of its own on 127.0.0.1, without TLS. */
export async function startMariadb(more: readonly string[] = []): Promise<Mariadb> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-mariadb-'))
  const account = accountOf('mysql')
  if (account !== undefined) chownSync(directory, account.uid, account.gid)
  const options = { cwd: directory, ...account }
  const data = join(directory, 'data')
  const socket = join(directory, 'socket')
  execFileSync(
    installer,
    ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'],
    { ...options, stdio: 'pipe' },
  )
  const port = await freePort()
  const small = [
    '--innodb-buffer-pool-size=8M',
    '--innodb-flush-log-at-trx-commit=0',
    '--innodb-log-file-size=4M',
  ]
  const where = ['--bind-address=127.0.0.1', `--port=${port}`, `--socket=${socket}`]
  const child = spawn(
    server,
    [
      '--no-defaults',
      `--datadir=${data}`,
      ...where,
      ...small,
      '--local-infile=1',
      '--skip-name-resolve',
      ...more,
    ],
    { ...options, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-10_000)
  })
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise(resolve => child.once('close', resolve))
      child.kill('SIGTERM')
      await ended
    }
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await until(
      () => `MariaDB is ready:\n${said}`,
      60_000,
      () => {
        if (child.exitCode !== null) throw new Error(`MariaDB ended:\n${said}`)
        return said.includes('ready for connections')
      },
    )
    const setup = `CREATE DATABASE ${mariadbName}; GRANT ALL ON *.* TO ${mariadbName}@'%' IDENTIFIED BY '${mariadbPassword}'`
    execFileSync('mariadb', ['--no-defaults', `--socket=${socket}`, '-u', 'root', '-e', setup], {
      stdio: 'pipe',
    })
  } catch (error) {
    await close()
    throw error
  }
  const login = [`-u${mariadbName}`, `-p${mariadbPassword}`]
  const client = ['--no-defaults', '--skip-ssl', '-h', '127.0.0.1', '-P', String(port), ...login, mariadbName]
  return { port, client, close }
}
