import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../../test/helpers/soak.ts'
import { mysqlDialects, postgresqlDialects, type SqlDialect } from './dialect.ts'
import { SqlStatements } from './statements.ts'

const postgresql = postgresqlDialects.plain
const mysql = mysqlDialects.escape
const statements = new SqlStatements()

function read(sql: string, dialect: SqlDialect = postgresql, whole = true) {
  const bytes = Buffer.from(sql)
  return statements.read(bytes, 0, bytes.length, whole, dialect)
}

function checkText(sql: string, want: string, dialect?: SqlDialect): void {
  assert.equal(read(sql, dialect).text, want)
}

function checkSummary(sql: string, want: string, dialect?: SqlDialect): void {
  assert.equal(read(sql, dialect).summary, want, sql)
}

function checkCut(sql: string, want: string, dialect?: SqlDialect): void {
  assert.equal(read(sql, dialect, false).text, want)
}

test('literals of PostgreSQL become question marks', () => {
  checkText("SELECT 'it''s' , 12, -1.5e-10, .5, 0x1F, 1_000", 'SELECT ?, ?, -?, ?, ?, ?')
  checkText(String.raw`SELECT 'a\', E'b\'c', B'01', X'ff', N'n', U&'d\0061'`, 'SELECT ?, ?, ?, ?, ?, U&?')
  checkText("SELECT $$it's$$, $tag$a $$ b$tag$, $1, $12", 'SELECT ?, ?, $1, $12')
  checkText('SELECT TRUE, null, false', 'SELECT TRUE, null, false')
  checkText(
    "SELECT a::text || 'x'::text, b->>'key', c #> '{a}' FROM t1",
    'SELECT a::text || ?::text, b->>?, c #> ? FROM t1',
  )
  checkText(
    'SELECT "a ""quoted"" name", "T2"."c" FROM "S"."T2"',
    'SELECT "a ""quoted"" name", "T2"."c" FROM "S"."T2"',
  )
  checkText("SELECT x FROM t WHERE j ? 'key' AND a1=2", 'SELECT x FROM t WHERE j ? ? AND a1=?')
  checkText("INSERT INTO t VALUES ('über', 'x')", 'INSERT INTO t VALUES (?, ?)')
  checkText('SELECT größe FROM bücher', 'SELECT größe FROM bücher')
})

test('literals of MySQL become question marks', () => {
  checkText(
    String.raw`SELECT "double \" quoted", 'single \' quoted', 'it''s', "a""b"`,
    'SELECT ?, ?, ?, ?',
    mysql,
  )
  checkText(
    "SELECT x'4D', 0x4D, b'1', N'n', _utf8mb4'text', `a``b`.`c 'd'`",
    "SELECT ?, ?, ?, ?, _utf8mb4?, `a``b`.`c 'd'`",
    mysql,
  )
  checkText(
    "SELECT @x, @@global.y, ?, 1--1 # comment 'a'\n, 2 -- 'b'",
    'SELECT @x, @@global.y, ?, ?--?, ?',
    mysql,
  )
  checkText("/*!40101 SET NAMES 'utf8' */", 'SET NAMES ?', mysql)
  checkText(String.raw`SELECT 'a\', b`, 'SELECT ?, b', mysqlDialects.plain)
})

test('lists of values behind IN and further rows of values are one', () => {
  checkText(
    'SELECT * FROM t WHERE a IN (1, 2,3) AND b IN(-1,-2) OR c in ($1,$2)',
    'SELECT * FROM t WHERE a IN (?) AND b IN (?) OR c in (?)',
  )
  checkText(
    'SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE c IN (1))',
    'SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE c IN (?))',
  )
  checkText('SELECT * FROM t WHERE a IN (1, b, 2)', 'SELECT * FROM t WHERE a IN (?, b, ?)')
  checkText(
    "SELECT * FROM t WHERE (a, b) IN ((1, 'x'), (2, 'y'), (3, 'z')) AND c",
    'SELECT * FROM t WHERE (a, b) IN ((?, ?)) AND c',
  )
  checkText(
    "INSERT INTO t (a, b) VALUES (1, 'a'), (2, 'b'), (3, 'c') RETURNING id",
    'INSERT INTO t (a, b) VALUES (?, ?) RETURNING id',
  )
  checkText('SELECT f(1), g(2), (3)', 'SELECT f(?), g(?), (?)')
  checkText('INSERT INTO t VALUES (1), (now()), (2)', 'INSERT INTO t VALUES (?), (now()), (?)')
})

test('many rows leave room for what follows them', () => {
  const rows = Array.from({ length: 500 }, (_, i) => `(${i}, 'name ${i}')`).join(', ')
  checkText(
    `INSERT INTO t VALUES ${rows} ON CONFLICT DO NOTHING`,
    'INSERT INTO t VALUES (?, ?) ON CONFLICT DO NOTHING',
  )
  const list = Array.from({ length: 2000 }, (_, i) => i).join(',')
  checkText(`SELECT a FROM t WHERE b IN (${list}) LIMIT 5`, 'SELECT a FROM t WHERE b IN (?) LIMIT ?')
})

test('comments and blanks are left out', () => {
  checkText('  SELECT\n\t1 -- one\n  , /* two /* nested */ */ 2  ', 'SELECT ?, ?')
  checkText("SELECT a--'b'\nFROM t", 'SELECT a FROM t')
  checkText('/* only this', '')
  checkText('', '')
  checkText('SELECT 1 /* a */ /* b */;', 'SELECT ?;')
})

test('what was cut shows no part of a literal', () => {
  checkCut("SELECT 'secr", 'SELECT ?')
  checkCut('SELECT $a$secret$a', 'SELECT ?')
  checkCut('SELECT $secret', 'SELECT ?')
  checkCut('SELECT "secr', 'SELECT ?')
  checkCut('SELECT "secr', 'SELECT ?', mysql)
  checkCut(String.raw`SELECT 'secr\'`, 'SELECT ?', mysql)
  checkCut('SELECT a FROM custom', 'SELECT a FROM')
  checkCut("SELECT E'secr", 'SELECT ?')
  checkCut('SELECT 12', 'SELECT ?')
})

test('where it is not known what a backslash is, nothing behind it is shown', () => {
  checkText(String.raw`SELECT 'a\' , 'secret' , b`, 'SELECT ?', postgresqlDialects.unknown)
  checkText(String.raw`SELECT 'it\'s secret', 'b'`, 'SELECT ?', mysqlDialects.unknown)
  checkText(String.raw`SELECT 'a\n', 'b'`, 'SELECT ?, ?', mysqlDialects.unknown)
})

test('a summary names operations and targets in their order', () => {
  checkSummary("SELECT * FROM wuser_table WHERE username = 'x'", 'SELECT wuser_table')
  checkSummary(
    'INSERT INTO shipping_details (order_id, address) SELECT order_id, address FROM orders WHERE order_id = 1',
    'INSERT shipping_details SELECT orders',
  )
  checkSummary('SELECT * FROM songs, artists WHERE songs.artist_id == artists.id', 'SELECT songs artists')
  checkSummary(
    'SELECT order_date FROM (SELECT * FROM orders o JOIN customers c ON o.customer_id = c.customer_id)',
    'SELECT SELECT orders customers',
  )
  checkSummary('SELECT * FROM "song list", artists', 'SELECT "song list" artists')
  checkSummary('select a from s.t as x left join only u using (id), v order by a, b', 'select s.t u v')
  checkSummary(
    'SELECT EXTRACT(year FROM d), substring(a from 1) FROM t WHERE a IS DISTINCT FROM b',
    'SELECT t',
  )
  checkSummary('SELECT (SELECT max(a) FROM u), b FROM t', 'SELECT SELECT u t')
  checkSummary('SELECT * FROM generate_series(1, 10) g, t', 'SELECT generate_series t')
  checkSummary('SELECT 1', 'SELECT')
  checkSummary('(SELECT a FROM t) UNION ALL (SELECT b FROM u)', 'SELECT t SELECT u')
  checkSummary('SELECT * FROM (a JOIN b ON true) WHERE x', 'SELECT a b')
  checkSummary('SELECT a FROM t FOR UPDATE OF t', 'SELECT t')
  checkSummary('WITH n AS (SELECT * FROM t) INSERT INTO u SELECT * FROM n', 'SELECT t INSERT u SELECT n')
  checkSummary('WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone', 'DELETE t SELECT gone')
  checkSummary('UPDATE ONLY t SET a = 1, b = (SELECT c FROM u) FROM v WHERE d', 'UPDATE t SELECT u v')
  checkSummary('UPDATE a, b SET a.x = b.x', 'UPDATE a b', mysql)
  checkSummary('DELETE FROM t USING u WHERE t.id = u.id', 'DELETE t u')
  checkSummary('INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET a = 2', 'INSERT t')
  checkSummary('INSERT IGNORE t SET a = 1 ON DUPLICATE KEY UPDATE a = 2', 'INSERT t', mysql)
  checkSummary('REPLACE INTO `db`.`t` VALUES (1)', 'REPLACE `db`.`t`', mysql)
  checkSummary('MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET a = 1', 'MERGE t u')
  checkSummary('TRUNCATE TABLE a, b', 'TRUNCATE a b')
  checkSummary('COPY t (a, b) FROM STDIN', 'COPY t')
  checkSummary('COPY (SELECT a FROM t) TO STDOUT', 'COPY SELECT t')
  checkSummary("LOAD DATA LOCAL INFILE '/x' INTO TABLE t FIELDS TERMINATED BY ','", 'LOAD t', mysql)
  checkSummary('CALL shop.order_item(1, 2)', 'CALL shop.order_item')
  checkSummary('EXPLAIN (ANALYZE, BUFFERS) SELECT a FROM t', 'EXPLAIN SELECT t')
  checkSummary('explain analyze verbose select a from t', 'explain select t')
  checkSummary('VACUUM FULL t', 'VACUUM t')
  checkSummary('', '')
  checkSummary("'text'", '')
  checkSummary('secret words', '')
  checkSummary('SELEC a FROM t', '')
  checkSummary('EXPLAIN secret', 'EXPLAIN')
})

test('statements of definition and of sessions have their second word', () => {
  checkSummary('CREATE TABLE IF NOT EXISTS users (id int, name text)', 'CREATE TABLE users')
  checkSummary('CREATE TEMP TABLE t AS SELECT * FROM u', 'CREATE TABLE t SELECT u')
  checkSummary('CREATE UNIQUE INDEX CONCURRENTLY i ON t (a, b)', 'CREATE INDEX i')
  checkSummary('CREATE OR REPLACE FUNCTION f() RETURNS int AS $$ SELECT 1 FROM t $$', 'CREATE FUNCTION f')
  checkSummary('DROP TABLE IF EXISTS a, b CASCADE', 'DROP TABLE a b')
  checkSummary('ALTER TABLE t ADD a int, ADD b int', 'ALTER TABLE t')
  checkSummary("CREATE USER bob PASSWORD 'x'", 'CREATE USER')
  checkSummary("SET search_path TO 'a'", 'SET')
  checkSummary('START TRANSACTION READ ONLY', 'START TRANSACTION')
  checkSummary('SHOW server_version', 'SHOW server_version')
  checkSummary('BEGIN', 'BEGIN')
  checkSummary('ROLLBACK TO SAVEPOINT s', 'ROLLBACK')
})

test('one operation has a name, and its one target too', () => {
  const one = read('SELECT * FROM "public"."users" WHERE id = 1')
  assert.deepEqual([one.operation, one.collection, one.batch], ['SELECT', 'public.users', 0])
  const several = read('SELECT * FROM a, b')
  assert.deepEqual([several.operation, several.collection], ['SELECT', ''])
  const nested = read('SELECT * FROM (SELECT * FROM a) x')
  assert.deepEqual([nested.operation, nested.collection], ['', ''])
  const table = read('DROP TABLE users')
  assert.deepEqual([table.operation, table.collection], ['DROP TABLE', 'users'])
  const call = read('CALL p(1)')
  assert.deepEqual([call.operation, call.collection, call.procedure], ['CALL', '', 'p'])
  const use = read('USE `shop`', mysql)
  assert.deepEqual([use.summary, use.database, use.collection], ['USE `shop`', 'shop', ''])
})

test('several statements are one batch', () => {
  const alike = read("INSERT INTO t VALUES (1); INSERT INTO t VALUES ('a', 2);")
  assert.deepEqual(
    [alike.summary, alike.operation, alike.collection, alike.batch],
    ['BATCH INSERT t', 'BATCH INSERT', 't', 2],
  )
  const mixed = read('BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); COMMIT')
  assert.deepEqual([mixed.summary, mixed.operation, mixed.batch], ['BEGIN; INSERT t; COMMIT', '', 4])
  assert.equal(read('SELECT 1;; ;').batch, 0)
})

test('statements that differ in their literals are the same object', () => {
  const first = read("SELECT a FROM t WHERE b = 'x' AND c IN (1, 2)")
  assert.equal(read("SELECT a FROM t WHERE b = 'yy' AND c IN (1, 2, 3)"), first)
})

test('texts and summaries are bounded and end with a whole token', () => {
  const columns = Array.from({ length: 400 }, (_, i) => `column_${i}`)
  const { text } = read(`SELECT ${columns.join(', ')} FROM t`)
  assert.ok(text.length <= 1024 && text.length > 1000)
  assert.match(text, /column_\d+,?$/)
  const tables = Array.from({ length: 100 }, (_, i) => `table_${i}`)
  const { summary } = read(`SELECT a FROM ${tables.join(', ')}`)
  assert.ok(summary.length <= 255 && summary.length > 240)
  assert.ok(tables.includes(summary.split(' ').at(-1)!))
  const batch = read(Array.from({ length: 100 }, (_, i) => `DELETE FROM t${i}`).join(';'))
  assert.ok(batch.summary.length <= 255)
  assert.equal(batch.batch, 100)
})

test('no bytes make it throw, nor exceed its bounds', () => {
  const runs = soak ? 200_000 : 4_000
  const pieces = fc.constantFrom(
    "'",
    '"',
    '`',
    '$$',
    '$a$',
    '(',
    ')',
    ',',
    ';',
    '\\',
    '--',
    '/*',
    '*/',
    '#',
    '\n',
    'IN',
    'VALUES',
    'SELECT',
    'FROM',
    'JOIN',
    'WITH',
    'a',
    '.',
    '1',
    'E',
    'é',
    'EXPLAIN',
    'CREATE',
    '/*!',
    '\0',
    '-',
    '?',
    '$1',
    'INSERT',
    'USING',
  )
  const text = fc
    .array(pieces, { maxLength: 80 })
    .chain(parts => fc.constantFrom(parts.join(''), parts.join(' ')))
  const dialect = fc.constantFrom(...Object.values(postgresqlDialects), ...Object.values(mysqlDialects))
  fc.assert(
    fc.property(text, dialect, fc.boolean(), (sql, kind, whole) => {
      const { text, summary } = read(sql, kind, whole)
      assert.ok(Buffer.byteLength(text) <= 1024 && Buffer.byteLength(summary) <= 255)
    }),
    { numRuns: runs },
  )
})

test('a literal never appears, wherever the statement is cut', () => {
  const sql = `SELECT a, 'secret one', E'secret\\'two', $$secret three$$, $x$ secret $$ four $x$ FROM t WHERE b IN ('secret', 'secret') AND c = 'it''s secret' /* secret */ -- secret`
  for (let end = 0; end <= sql.length; end++)
    for (const whole of [true, false])
      assert.ok(!read(sql.slice(0, end), postgresql, whole).text.includes('secr'), sql.slice(0, end))
})

test('hostile statements take linear time', () => {
  for (const piece of ['$a', '$a$', '/*', '(', "'", 'a.', 'IN (', '--', 'VALUES (1),']) {
    const sql = piece.repeat(200_000 / piece.length)
    assert.ok(read(sql).text.length <= 1024)
  }
})

test('nothing behind a statement is looked at', () => {
  const statements = new SqlStatements()
  for (const sql of ['SELECT 1 -- the end', 'SELECT $tag$ never ends', 'SELECT $$ab$$']) {
    const bytes = Buffer.alloc(1 << 16, 0x01)
    bytes.write(sql, 'latin1')
    const touched = new Proxy(bytes, {
      get(target, key) {
        if (typeof key === 'string' && /^\d+$/.test(key)) assert.ok(Number(key) <= sql.length, key)
        assert.notEqual(key, 'indexOf')
        return Reflect.get(target, key)
      },
    })
    statements.read(touched, 0, sql.length, true, postgresqlDialects.plain)
  }
})
