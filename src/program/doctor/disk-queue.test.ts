import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { loadConfig } from '../../config/index.ts'
import { diskQueue } from './disk-queue.ts'

async function tried(env: Record<string, string>): Promise<[string, string][]> {
  const nowhere = '/nonexistent'
  const loaded = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env })
  assert.deepEqual(loaded.problems, [])
  const found = await diskQueue.try({ loaded, timeoutMs: 1000 })
  return found.map(finding => ('ok' in finding ? ['ok', finding.ok] : [finding.fault, finding.detail]))
}

function directoryOf(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-doctor-queue-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return directory
}

const sends = { SVC_OTLP_ENDPOINT: 'localhost:4317' }

test('where nothing is sent no queue is looked for', async () => {
  assert.deepEqual(await tried({}), [])
})

test('a directory that is still to be made, with room for the queue, is well', async t => {
  const directory = join(directoryOf(t), 'not', 'there')
  const size = { SVC_PIPELINE_EXPORT_QUEUE_MAX_SIZE_BYTES: '1Mi' }
  const [[state, text]] = (await tried({
    ...sends,
    ...size,
    SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: directory,
  })) as [[string, string]]
  assert.equal(state, 'ok')
  assert.match(text, /room for \d+ MiB$/)
})

test('a file system that is smaller than the queue, a file in its place and no queue at all are told', async t => {
  const directory = directoryOf(t)
  const at = { ...sends, SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: directory }
  const large = await tried({ ...at, SVC_PIPELINE_EXPORT_QUEUE_MAX_SIZE_BYTES: '1024Gi' })
  assert.deepEqual(
    large.map(([fault]) => fault),
    ['small'],
  )
  const file = join(directory, 'file')
  writeFileSync(file, '')
  assert.deepEqual(await tried({ ...sends, SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: join(file, 'queue') }), [
    ['unwritable', `${file} is not a directory`],
  ])
  const [[fault]] = (await tried({ ...at, SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'false' })) as [[string, string]]
  assert.equal(fault, 'off')
})

test('a directory that cannot even be looked at is told as one that cannot be written', async () => {
  const directory = `/tmp/${'x'.repeat(300)}/queue`
  const [[fault, detail]] = (await tried({
    ...sends,
    SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: directory,
  })) as [[string, string]]
  assert.equal(fault, 'unwritable')
  assert.match(detail, /ENAMETOOLONG/)
})
