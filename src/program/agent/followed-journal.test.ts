import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../test/helpers/program.ts'
import { loadConfig } from '../../config/index.ts'
import { LogPositions } from '../../signals/logs/log-positions.ts'
import { FollowedJournal } from './followed-journal.ts'

test('what was read of the journal before it is stopped is not read again', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-followed-journal-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const program = join(directory, 'journalctl')
  const entry = JSON.stringify({ __CURSOR: 's=a;i=2', MESSAGE: 'hello', _PID: '1' })
  writeFileSync(program, `#!/bin/sh\necho '${entry}'\nexec sleep 600\n`, { mode: 0o755 })
  const nowhere = '/nonexistent'
  const { config } = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env: {} })
  const path = join(directory, 'positions')
  const positions = new LogPositions(path)
  const bodies: string[] = []
  const journal = new FollowedJournal({
    settings: config.agent.logs,
    positions,
    pressure: () => 0,
    secured: () => sleep(300),
    warn: message => assert.fail(message),
    emit: ({ body }) => bodies.push(body),
    program,
  })
  assert.equal(journal.state.reason, '', 'nothing is known against it')
  await until('the entry', 20_000, async () => bodies.length === 1)
  await journal.stop()
  assert.equal(positions.cursor('journal'), 's=a;i=2')
  assert.match(readFileSync(path, 'utf8'), /"s=a;i=2"/)
})
