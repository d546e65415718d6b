import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LogRecord } from '../../foundation/model/log.ts'
import { type JournalOptions, JournalSource } from './journal.ts'
import { JournalEntries, journalContainer } from './journal-entry.ts'
import { RecordParser } from './record-parser.ts'

const directories: string[] = []
const running: JournalSource[] = []
after(async () => {
  await Promise.all(running.map(source => source.stop()))
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-journal-'))
  directories.push(directory)
  return directory
}

/** Makes journal files of the export format; the path is not in the usual one for programs. */
const remote =
  ['/usr/lib/systemd', '/lib/systemd', ...(process.env.PATH ?? '').split(':')]
    .map(directory => join(directory, 'systemd-journal-remote'))
    .find(path => existsSync(path)) ?? ''
const withoutJournal: string | false =
  remote !== '' && existsSync('/usr/bin/journalctl')
    ? false
    : 'journal files are written with systemd-journal-remote and read with journalctl, and one of them is missing'

type Fields = Readonly<Record<string, string | Buffer>>

let moment = 1_700_000_000_000_000

/** Adds entries to a journal file (systemd, docs/JOURNAL_EXPORT_FORMATS.md), a second apart. */
function write(file: string, entries: readonly Fields[]): void {
  const pieces: Buffer[] = []
  for (const entry of entries) {
    moment += 1_000_000
    const times = {
      __REALTIME_TIMESTAMP: `${moment}`,
      __MONOTONIC_TIMESTAMP: `${moment % 1e12}`,
      _BOOT_ID: '6c7b7e3a5a4c4f0f8c0f0e0d0c0b0a09',
    }
    for (const [name, value] of Object.entries({ ...times, ...entry })) {
      const bytes = Buffer.from(value)
      const length = Buffer.alloc(8)
      length.writeBigUInt64LE(BigInt(bytes.length))
      if (typeof value === 'string' && !value.includes('\n')) pieces.push(Buffer.from(`${name}=${value}\n`))
      else pieces.push(Buffer.from(`${name}\n`), length, bytes, Buffer.from('\n'))
    }
    pieces.push(Buffer.from('\n'))
  }
  const done = spawnSync(remote, [`--output=${file}`, '-'], { input: Buffer.concat(pieces) })
  assert.equal(done.status, 0, String(done.stderr))
}

interface Seen {
  readonly body: string
  readonly severity: number
  readonly severityText: string
  readonly timeUs: number
  readonly trace: string
  readonly attributes: Record<string, unknown>
}

function following(options: Partial<JournalOptions>) {
  const seen: Seen[] = []
  const warnings: string[] = []
  const source = new JournalSource({
    emit: record => {
      const { body, severity, severityText, timeUs } = record
      const trace = Buffer.from(record.traceId).toString('hex')
      seen.push({ body, severity, severityText, timeUs, trace, attributes: record.attributes.toObject() })
    },
    parse: { json: true, severity: true, traceContext: true },
    cursor: '',
    startAt: 'beginning',
    warn: message => warnings.push(message),
    ...options,
  })
  running.push(source)
  source.start()
  return { source, seen, warnings, bodies: () => seen.map(({ body }) => body) }
}

async function until(isSo: () => boolean, what: () => unknown): Promise<void> {
  for (const end = Date.now() + 60_000; !isSo(); await sleep(20))
    if (Date.now() > end) assert.fail(`it does not come: ${JSON.stringify(what())}`)
}

test('entries of a journal become records, and new ones follow', { skip: withoutJournal }, async () => {
  const directory = scratch()
  const file = join(directory, 'a.journal')
  const trace = '0af7651916cd43dd8448eb211c80319c'
  write(file, [
    {
      MESSAGE: 'first',
      PRIORITY: '3',
      _PID: '42',
      _UID: '0',
      _COMM: 'shop',
      _EXE: '/usr/bin/shop',
      _SYSTEMD_UNIT: 'shop.service',
      _TRANSPORT: 'syslog',
      SYSLOG_IDENTIFIER: 'shop',
      CODE_FILE: 'a.c',
      CODE_LINE: '7',
      CODE_FUNC: 'main',
      USELESS: 'x',
    },
    {
      MESSAGE: 'WARN it is slow',
      PRIORITY: '6',
      _TRANSPORT: 'stdout',
      TRACE_ID: trace,
      SPAN_ID: 'b7ad6b7169203331',
    },
    { MESSAGE: 'WARN it is slow', PRIORITY: '6', _TRANSPORT: 'journal' },
    {
      MESSAGE: '{"level":"error","msg":"no"}',
      PRIORITY: '6',
      CONTAINER_ID_FULL: 'ab'.repeat(32),
      CONTAINER_NAME: 'web',
      _UID: '0',
    },
    { MESSAGE: Buffer.from('two\nlines \xff', 'latin1') },
    { MESSAGE: 'x'.repeat(100_000) },
    { MESSAGE: 'Started it.', _PID: '1', _SYSTEMD_UNIT: 'init.scope', UNIT: 'shop.service' },
    { _PID: '7', PRIORITY: '1' },
    { MESSAGE: 'of the agent', _PID: '99' },
    { MESSAGE: 'last' },
  ])
  const { source, seen, bodies } = following({ directory, ownPid: 99 })
  await until(() => seen.length === 8, bodies)
  const first = moment - 9_000_000
  assert.deepEqual(seen[0], {
    body: 'first',
    severity: 17,
    severityText: 'err',
    timeUs: first,
    trace: '0'.repeat(32),
    attributes: {
      'process.pid': 42,
      'process.user.id': 0,
      'process.executable.name': 'shop',
      'process.executable.path': '/usr/bin/shop',
      'code.file.path': 'a.c',
      'code.line.number': 7,
      'code.function.name': 'main',
      'svc.syslog.identifier': 'shop',
      'svc.journal.transport': 'syslog',
      'svc.systemd.unit': 'shop.service',
    },
  })
  assert.deepEqual([seen[1]!.severity, seen[1]!.severityText, seen[1]!.trace], [13, 'WARN', trace])
  assert.deepEqual([seen[2]!.severity, seen[2]!.severityText], [9, 'info'])
  assert.deepEqual([seen[3]!.body, seen[3]!.severity], ['no', 17])
  assert.deepEqual(seen[3]!.attributes, {
    'process.user.id': 0,
    'container.id': 'ab'.repeat(32),
    'container.name': 'web',
  })
  assert.equal(seen[4]!.body, 'two\nlines \ufffd')
  assert.equal(seen[5]!.body.length, 100_000)
  assert.equal(seen[6]!.attributes['svc.systemd.unit'], 'shop.service')
  assert.equal(seen[7]!.body, 'last')
  write(file, [{ MESSAGE: 'new' }])
  await until(() => seen.length === 9, bodies)
  assert.equal(source.state.records, 9)
  assert.equal(source.state.reason, '')
  await source.stop()
})

test('the journal is followed on from a cursor, and from now on without one', {
  skip: withoutJournal,
}, async () => {
  const directory = scratch()
  const file = join(directory, 'a.journal')
  write(
    file,
    Array.from({ length: 30 }, (_, i) => ({ MESSAGE: `old ${i}` })),
  )
  const before = following({ directory })
  await until(() => before.seen.length === 30, before.bodies)
  const cursor = before.source.cursorSeen
  await before.source.stop()
  write(
    file,
    Array.from({ length: 15 }, (_, i) => ({ MESSAGE: `new ${i}` })),
  )
  const behind = following({ directory, cursor })
  const fresh = following({ directory, startAt: 'end' })
  await until(() => behind.seen.length === 15, behind.bodies)
  assert.deepEqual(
    behind.bodies(),
    Array.from({ length: 15 }, (_, i) => `new ${i}`),
  )
  // What is older than the agent is not read, what comes is.
  moment = Date.now() * 1000 + 60e6
  await until(
    () => fresh.source.state.reason === '',
    () => fresh.source.state,
  )
  write(file, [{ MESSAGE: 'now' }])
  await until(() => fresh.seen.length > 0, fresh.bodies)
  assert.deepEqual(fresh.bodies(), ['now'])
})

test('a place that the journal does not know is given up with a warning', {
  skip: withoutJournal,
}, async () => {
  const directory = scratch()
  write(join(directory, 'a.journal'), [{ MESSAGE: 'x' }])
  const { seen, warnings, bodies } = following({ directory, cursor: 's=nothing' })
  await until(() => seen.length === 1, bodies)
  assert.match(warnings[0]!, /position in the systemd journal not found/)
})

/** A program in the place of journalctl that begins as the text says. */
function program(script: string): string {
  const path = join(scratch(), 'journalctl')
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  return path
}

const entry = (message: string, number: number) =>
  JSON.stringify({ __CURSOR: `s=1;i=${number}`, __REALTIME_TIMESTAMP: '1700000000000000', MESSAGE: message })

test('journalctl is started again where it was when it ends', async () => {
  const path = program(`case "$*" in
*after-cursor=s=1*i=2*) echo '${entry('third', 3)}'; exec /bin/sleep 1000;;
*after-cursor*) exit 9;;
*) echo '${entry('first', 1)}'; echo '${entry('second', 2)}'; exit 0;;
esac`)
  const { source, seen, warnings, bodies } = following({ program: path })
  await until(() => seen.length === 3, bodies)
  assert.deepEqual(bodies(), ['first', 'second', 'third'])
  assert.equal(source.state.restarts, 1)
  assert.deepEqual(warnings, [])
  await source.stop()
  assert.equal(source.state.reason, 'stopped')
})

test('lines that are none, or too long, are counted and leave the next ones alone', async () => {
  const path = program(`echo 'no entry'; echo '{"a":'; echo '[]'; echo '{"MESSAGE":"no place"}'
printf '{"MESSAGE":"'; /usr/bin/head -c 3000000 /dev/zero | /usr/bin/tr '\\0' x; echo '"}'
echo '{"__CURSOR":"s=1;i=1","MESSAGE":[300,"x",{}],"PRIORITY":["1","2"],"_PID":{}}'
echo '{"__CURSOR":"s=1;i=2","MESSAGE":["one","two"],"PRIORITY":[1],"_PID":"9999999999999999999"}'
echo '{"__CURSOR":"not a place","MESSAGE":[[104,105],"two"],"PRIORITY":"12"}'
exec /bin/sleep 1000`)
  const { source, seen, bodies } = following({ program: path })
  await until(() => seen.length === 2, bodies)
  assert.deepEqual(bodies(), ['one', 'hi'])
  assert.equal(source.state.odd, 5)
  assert.equal(source.cursorSeen, 's=1;i=2')
  await source.stop()
})

test('while it is paused nothing more is read than fits into pipes', async () => {
  const path = program(
    `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo '${entry('x'.repeat(200), 1)}'; done; exec /bin/sleep 1000`,
  )
  const { source, seen } = following({ program: path })
  await until(
    () => seen.length > 100,
    () => seen.length,
  )
  source.pause()
  await sleep(300)
  const paused = seen.length
  await sleep(300)
  assert.equal(seen.length, paused)
  assert.ok(paused < 20_000)
  source.resume()
  await until(
    () => seen.length === 20_000,
    () => seen.length,
  )
  await source.stop()
})

test('why it does not run is told once, with the hint', async () => {
  const absent = following({ program: '/nowhere/journalctl' })
  await until(
    () => absent.source.state.restarts > 0,
    () => absent.source.state,
  )
  assert.match(absent.warnings.join(' | '), /^[^|]*\/nowhere\/journalctl not found; install systemd[^|]*$/)
  assert.match(absent.source.state.reason, /not found$/)
  assert.match(absent.source.state.hint, /^install systemd/)
  await absent.source.stop()
  const failing = following({ program: program('echo "No journal files were found." >&2; exit 1') })
  await until(
    () => failing.source.state.restarts > 0,
    () => failing.source.state,
  )
  assert.match(
    failing.warnings.join(' | '),
    /^[^|]*No journal files were found\. \(exit status 1\); run [^|]*$/,
  )
  await failing.source.stop()
})

test('what does not end when it is asked to is ended', async () => {
  const path = program(`trap '' TERM; echo '${entry('x', 1)}'; while :; do /bin/sleep 0.1; done`)
  const { source, seen, bodies } = following({ program: path })
  await until(() => seen.length === 1, bodies)
  await source.stop()
  await source.stop()
})

test('an entry is of a container where root says so, whom everybody else could name', () => {
  const entries = new JournalEntries(new RecordParser({ json: true, severity: true, traceContext: true }))
  const container = (fields: Fields) => {
    const record = new LogRecord()
    const line = Buffer.from(JSON.stringify({ __CURSOR: 's=a', MESSAGE: 'hello', ...fields }))
    assert.equal(entries.read(record, line, 1), 'record')
    return journalContainer(record)
  }
  const id = 'c'.repeat(64)
  assert.equal(container({ CONTAINER_ID_FULL: id, _UID: '0' }), id)
  assert.equal(container({ CONTAINER_ID_FULL: id, _UID: '1000' }), '')
  assert.equal(container({ CONTAINER_ID_FULL: id }), '')
  assert.equal(container({ CONTAINER_ID_FULL: 'web', _UID: '0' }), '')
  assert.equal(container({ _UID: '0' }), '')
})
