// A process that ships numbered log records through the agent's own pipeline, for tests that kill it:
//   node test/helpers/log-shipper.ts ENDPOINT DIRECTORY PREFIX
// Writes to standard output, again and again, how many records the queue has accepted; the records' bodies are
// PREFIX:0, PREFIX:1 and so on, in this order. With a PREFIX of "-" it makes none, and ends when nothing is queued.
import { writeSync } from 'node:fs'
import { loadConfig } from '../../src/config/index.ts'
import { LogRecord } from '../../src/foundation/model/log.ts'
import { resource } from '../../src/foundation/model/resource.ts'
import { ExportPipelines } from '../../src/program/agent/export-pipelines.ts'
import { nativeOrThrow } from './native.ts'
import { silentLogger } from './silent-logger.ts'

const [endpoint, directory, prefix] = process.argv.slice(2) as [string, string, string]
const { config, problems } = loadConfig({
  explicit: false,
  cwd: '/nonexistent',
  systemFile: '/nonexistent',
  env: {
    SVC_OTLP_ENDPOINT: endpoint,
    SVC_OTLP_INSECURE: 'true',
    SVC_OTLP_TIMEOUT: '2s',
    SVC_BACKOFF_INITIAL: '10ms',
    SVC_BACKOFF_MAX: '50ms',
    SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '5ms',
    SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: directory,
    SVC_PIPELINE_EXPORT_QUEUE_MAX_SIZE_BYTES: '64Mi',
  },
})
if (problems.length > 0) throw new Error(problems[0]!.message)
const native = nativeOrThrow()
const pipelines = new ExportPipelines(config, {
  log: silentLogger,
  observe: () => {},
  lock: fd => native.flock(fd),
})
if (typeof pipelines.store !== 'object') throw new Error(`no queue on disk: ${pipelines.store}`)
const { pipeline } = pipelines
const logs = pipeline.intake('logs')
const host = resource({ 'host.name': 'test' })
const scope = { name: 'test', version: '1' }
const record = new LogRecord()
let made = 0
let told = -1

function turn(): void {
  if (prefix !== '-')
    for (let i = 0; i < 20; i++) {
      record.body = `${prefix}:${made++}`
      logs.add(host, scope, record)
    }
  const { accepted, queued } = pipeline.state('logs')
  if (accepted !== told) writeSync(1, `${accepted}\n`)
  told = accepted
  if (prefix === '-' && queued === 0) void pipeline.drain(0)
  else setTimeout(turn, 2)
}
turn()
