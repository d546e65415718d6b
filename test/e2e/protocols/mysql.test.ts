// owns: ports
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import mysql, { type Connection } from 'mysql2/promise'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import { DatabaseSpans } from '../../helpers/database-spans.ts'
import {
  type Mariadb,
  mariadbName,
  mariadbPassword,
  startMariadb,
  withoutMariadb,
} from '../../helpers/servers/mariadb.ts'
import { soak } from '../../helpers/soak.ts'
import { Telemetry } from '../../helpers/telemetry.ts'

const run = promisify(execFile)
const skip = withoutMariadb || withoutBpf
const count = soak ? 2_000 : 200

let telemetry: Telemetry
let mariadb: Mariadb
let spans: DatabaseSpans
let directory: string

before(async () => {
  if (skip) return
  directory = mkdtempSync(join(tmpdir(), 'svc-e2e-mysql-'))
  telemetry = await Telemetry.start()
  mariadb = await startMariadb()
  spans = await DatabaseSpans.start(telemetry, mariadb.port)
  await shell('CREATE TABLE items (id int primary key, name text)', 'CREATE TABLE counts (n int)')
  await spans.further(2)
})

after(async () => {
  await spans?.stop()
  await mariadb?.close()
  await telemetry?.close()
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
})

/** Statements by the command line client, over one connection. */
async function shell(...statements: string[]): Promise<void> {
  await run('mariadb', [
    ...mariadb.client,
    '--force',
    '--local-infile=1',
    '-e',
    statements.join(';\n'),
  ]).catch((error: { code: number }) => {
    if (error.code !== 1) throw error // a statement failed
  })
}

function connect(): Promise<Connection> {
  return mysql.createConnection({
    host: '127.0.0.1',
    port: mariadb.port,
    user: mariadbName,
    password: mariadbPassword,
    database: mariadbName,
    multipleStatements: true,
  })
}

test('each statement of the command line client is one span', { skip }, async () => {
  await shell(
    "INSERT INTO items VALUES (1, 'secret'), (2, 'secret')",
    'SELECT * FROM items',
    'PREPARE s FROM "SELECT * FROM items WHERE id = ?"',
    'EXECUTE s USING 1',
  )
  const seen = await spans.check({ 'INSERT items': 1, 'SELECT items': 1, PREPARE: 1, 'EXECUTE s': 1 })
  assert.ok(!JSON.stringify(seen).includes('secret'))
  for (const { kind, resource, attributes, status } of seen) {
    assert.equal(kind, 3)
    assert.match(String(resource['service.name']), /^(mariadb|mysql)$/)
    assert.equal(attributes['db.system.name'], 'mariadb')
    assert.equal(attributes['db.namespace'], mariadbName)
    assert.equal(status, 0)
  }
})

test('each query and execution of a Node.js client is one span, whatever becomes of it', {
  skip,
}, async () => {
  const one = await connect()
  for (let i = 0; i < count; i++) {
    await one.query('SELECT * FROM items WHERE id = ?', [i])
    await one.execute('SELECT name FROM items WHERE id = ?', [i])
    await one.execute('INSERT INTO counts VALUES (?)', [i])
    if (i % 10 > 0) continue
    await assert.rejects(one.query('SELECT bad FROM items'))
    await assert.rejects(one.execute('INSERT INTO items VALUES (?, ?)', [1, 'secret']))
    await one.query('SELECT 1; INSERT INTO counts VALUES (1); SELECT 2')
    await one.ping()
  }
  await one.end()
  const seen = await spans.check({
    'SELECT items': 2 * count,
    'INSERT counts': count,
    'PREPARE SELECT items': 1,
    'PREPARE INSERT counts': 1,
    'PREPARE INSERT items': 1,
    'SELECT items 1054': count / 10,
    'INSERT items 1062': count / 10,
    'SELECT; INSERT counts; SELECT': count / 10,
  })
  for (const { status, attributes } of seen)
    assert.equal(status, attributes['error.type'] === undefined ? 0 : 2)
})

test('long statements and long results are one span each', { skip }, async () => {
  const one = await connect()
  for (let i = 0; i < 5; i++) {
    await one.query(`SELECT count(*) FROM items WHERE name = '${'x'.repeat(200_000)}'`)
    await one.query("SELECT seq, REPEAT('x', 100) FROM seq_1_to_20000")
    await one.query("SELECT REPEAT('x', 3000000)")
    await one.execute("SELECT REPEAT('y', 300000)")
    await one.execute('SELECT count(*) FROM items WHERE name = ?', ['z'.repeat(200_000)])
  }
  await one.end()
  await spans.check({
    'SELECT items': 10,
    'SELECT seq_1_to_20000': 5,
    SELECT: 10,
    'PREPARE SELECT': 1,
    'PREPARE SELECT items': 1,
  })
})

test('a file that is loaded is one span', { skip }, async () => {
  const file = join(directory, 'counts')
  writeFileSync(file, Array.from({ length: 50_000 }, (_, i) => `${i}\n`).join(''))
  await shell(`LOAD DATA LOCAL INFILE '${file}' INTO TABLE counts`, 'SELECT * FROM counts', 'SELECT 1')
  await spans.check({ 'LOAD counts': 1, 'SELECT counts': 1, SELECT: 1 })
})

test('a connection that is older than the agent is followed from its next command on', { skip }, async () => {
  const one = await connect()
  await one.execute('SELECT name FROM items WHERE id = ?', [1])
  await spans.restart()
  for (let i = 0; i < count; i++) {
    await one.query('SELECT * FROM items WHERE id = ?', [i])
    await one.execute('SELECT name FROM items WHERE id = ?', [i])
  }
  await one.end()
  await spans.check({ 'SELECT items': count, mysql: count })
})

test('the database that is used is known', { skip }, async () => {
  const one = await connect()
  await one.query('SELECT 1')
  await one.query('USE mysql')
  await one.query('SELECT 1')
  await one.changeUser({ user: mariadbName, password: mariadbPassword, database: mariadbName })
  await one.query('SELECT 1')
  await one.end()
  const seen = await spans.check({ SELECT: 3, 'USE mysql': 1 })
  const names = seen.map(({ attributes }) => attributes['db.namespace'])
  assert.deepEqual(names.sort(), ['mysql', mariadbName, mariadbName, mariadbName])
})

test('a query whose connection is ended by the server has failed', { skip }, async () => {
  const one = await connect()
  one.on('error', () => {})
  const sleeping = one.query('SELECT SLEEP(30)')
  sleeping.catch(() => {})
  const other = await connect()
  await other.query(`KILL CONNECTION ${one.threadId}`)
  await assert.rejects(sleeping)
  await other.end()
  one.destroy()
  const seen = await spans.further(2)
  assert.deepEqual(seen.map(({ name }) => name).sort(), ['KILL', 'SELECT'])
  assert.ok(seen.some(({ name, attributes }) => name === 'SELECT' && attributes['error.type'] !== undefined))
})
