// owns: ports
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import { DatabaseSpans } from '../../helpers/database-spans.ts'
import {
  type Postgres,
  postgresName,
  startPostgres,
  withoutPostgres,
} from '../../helpers/servers/postgres.ts'
import { soak } from '../../helpers/soak.ts'
import { Telemetry } from '../../helpers/telemetry.ts'

/** The package brings no types. */
interface Client {
  connect(): Promise<void>
  query(query: string | object, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
  end(): Promise<void>
  on(event: 'error', listener: () => void): void
}
const pg = createRequire(import.meta.url)('pg') as { Client: new (options: object) => Client }

const run = promisify(execFile)
const skip = withoutPostgres || withoutBpf
const count = soak ? 2_000 : 200

let telemetry: Telemetry
let postgres: Postgres
let spans: DatabaseSpans
let directory: string

before(async () => {
  if (skip) return
  directory = mkdtempSync(join(tmpdir(), 'svc-e2e-postgres-'))
  telemetry = await Telemetry.start()
  postgres = await startPostgres()
  spans = await DatabaseSpans.start(telemetry, postgres.port)
  await psql('CREATE TABLE items (id int primary key, name text)', 'CREATE TABLE counts (n int)')
  await spans.further(2)
})

after(async () => {
  await spans?.stop()
  await postgres?.close()
  await telemetry?.close()
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
})

function environment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PGHOST: '127.0.0.1',
    PGPORT: String(postgres.port),
    PGUSER: postgresName,
    PGDATABASE: postgresName,
    PGSSLMODE: 'disable',
  }
}

async function psql(...statements: string[]): Promise<void> {
  const args = ['-q', '-v', 'ON_ERROR_STOP=0', ...statements.flatMap(sql => ['-c', sql])]
  await run(postgres.program('psql'), args, { env: environment() }).catch((error: { code: number }) => {
    if (error.code !== 1) throw error // the last statement failed
  })
}

function client(): Client {
  return new pg.Client({ host: '127.0.0.1', port: postgres.port, user: postgresName, database: postgresName })
}

test('each statement of psql is one span', { skip }, async () => {
  await psql(
    "INSERT INTO items VALUES (1, 'secret'), (2, 'secret')",
    'SELECT * FROM items',
    "DO $$ BEGIN RAISE NOTICE 'hello'; END $$",
    'BEGIN; INSERT INTO counts VALUES (1); COMMIT',
    'SELECT * FROM nowhere',
  )
  const seen = await spans.check({
    'INSERT items': 1,
    'SELECT items': 1,
    DO: 1,
    'BEGIN; INSERT counts; COMMIT': 1,
    'SELECT nowhere 42P01': 1,
  })
  assert.ok(!JSON.stringify(seen).includes('secret'))
  for (const { kind, resource, attributes, status } of seen) {
    assert.equal(kind, 3)
    assert.equal(resource['service.name'], 'psql')
    assert.equal(attributes['db.system.name'], 'postgresql')
    assert.equal(attributes['db.namespace'], postgresName)
    assert.equal(status, attributes['error.type'] === undefined ? 0 : 2)
  }
})

for (const mode of ['simple', 'extended', 'prepared'])
  test(`pgbench counts as many ${mode} queries as there are spans`, { skip }, async () => {
    const script = join(directory, `${mode}.sql`)
    writeFileSync(script, 'SELECT count(*) FROM items;\nINSERT INTO counts VALUES (1);\n')
    const args = ['-n', '-M', mode, '-c', '2', '-t', String(count / 2), '-f', script]
    await run(postgres.program('pgbench'), args, { env: environment() })
    await spans.check({ 'SELECT items': count, 'INSERT counts': count })
  })

test('each query of a pipeline is one span', { skip }, async () => {
  const script = join(directory, 'pipeline.sql')
  writeFileSync(
    script,
    `\\startpipeline\n${'SELECT count(*) FROM items;\nINSERT INTO counts VALUES (1);\n'.repeat(10)}\\endpipeline\n`,
  )
  const args = ['-n', '-M', 'extended', '-c', '1', '-t', String(count / 10), '-f', script]
  await run(postgres.program('pgbench'), args, { env: environment() })
  await spans.check({ 'SELECT items': count, 'INSERT counts': count })
})

test('each query of a Node.js client is one span, whatever becomes of it', { skip }, async () => {
  const one = client()
  await one.connect()
  for (let i = 0; i < count; i++) {
    await one.query('SELECT * FROM items WHERE id = $1', [i])
    await one.query({ name: 'get', text: 'SELECT name FROM items WHERE id = $1', values: [i] })
    if (i % 10 > 0) continue
    await assert.rejects(one.query('SELECT $1::int / 0', [1]))
    await assert.rejects(one.query('SELECT bad FROM items WHERE id = $1', [1]))
    await one.query("DO $$ BEGIN RAISE NOTICE 'hello'; END $$")
  }
  await one.end()
  await spans.check({
    'SELECT items': 2 * count,
    'SELECT 22012': count / 10,
    'SELECT items 42703': count / 10,
    DO: count / 10,
  })
})

test('long statements and long results are one span each', { skip }, async () => {
  const one = client()
  await one.connect()
  for (let i = 0; i < 5; i++) {
    await one.query(`SELECT count(*) FROM items WHERE name = '${'x'.repeat(200_000)}'`)
    await one.query("SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n")
    await one.query("SELECT repeat('x', 3000000)")
    await one.query('SELECT repeat($1, 300000)', ['y'.repeat(10)])
    await one.query('SELECT count(*) FROM items WHERE name = $1', ['z'.repeat(200_000)])
  }
  await one.end()
  await spans.check({ 'SELECT items': 10, 'SELECT generate_series': 5, SELECT: 10 })
})

test('COPY is one span in both directions', { skip }, async () => {
  const rows = Array.from({ length: 20_000 }, (_, i) => `${i}\n`).join('')
  const child = spawn(
    postgres.program('psql'),
    [
      '-q',
      '-c',
      'COPY counts FROM STDIN',
      '-c',
      'COPY counts TO STDOUT',
      '-c',
      'SELECT count(*) FROM counts',
    ],
    { env: environment(), stdio: ['pipe', 'ignore', 'inherit'] },
  )
  child.stdin.end(rows)
  await new Promise(resolve => child.once('close', resolve))
  await spans.check({ 'COPY counts': 2, 'SELECT counts': 1 })
})

test('a connection that is older than the agent is followed from its next query on', { skip }, async () => {
  const one = client()
  await one.connect()
  await one.query({ name: 'old', text: 'SELECT name FROM items WHERE id = $1', values: [1] })
  await spans.restart()
  for (let i = 0; i < count; i++) {
    await one.query('SELECT * FROM items WHERE id = $1', [i])
    await one.query({ name: 'old', text: 'SELECT name FROM items WHERE id = $1', values: [i] })
    await one.query('SELECT count(*) FROM counts')
  }
  await one.end()
  await spans.check({ 'SELECT items': count, postgresql: count, 'SELECT counts': count })
})

test('a query whose connection is ended by the server has failed', { skip }, async () => {
  const one = client()
  one.on('error', () => {})
  await one.connect()
  const { rows } = await one.query('SELECT pg_backend_pid() AS pid')
  const sleeping = one.query('SELECT pg_sleep(30)')
  // It may fail before the other one has its answer.
  sleeping.catch(() => {})
  const other = client()
  await other.connect()
  await other.query('SELECT pg_terminate_backend($1)', [rows[0]!.pid])
  await assert.rejects(sleeping)
  await other.end()
  await spans.check({ SELECT: 2, 'SELECT 57P01': 1 })
})
