// VictoriaMetrics of a newer suite of Debian, which takes OTLP: a receiver of metrics that nobody here wrote, and that
// can be asked what it was told.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { debianProgram, withoutProgram } from './debian-program.ts'
import { call } from './http.ts'
import { freePort, until } from './program.ts'

// Older ones know no OTLP over HTTP as it is sent today.
const suite = 'trixie'
const found = debianProgram({ package: 'victoria-metrics', path: 'usr/bin/victoria-metrics', suite })

export const withoutVictoriaMetrics: string | false = withoutProgram(found, `victoria-metrics of ${suite}`)

/** A series as it is kept: its values stand beside their times. */
export interface StoredSeries {
  /** With `__name__`. */
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly (number | string | null)[]
  /** Milliseconds since the Unix epoch. */
  readonly timestamps: readonly number[]
}

export class VictoriaMetrics {
  readonly port: number
  readonly #child: ChildProcess
  readonly #directory: string

  private constructor(child: ChildProcess, port: number, directory: string) {
    this.#child = child
    this.port = port
    this.#directory = directory
  }

  static async start(flags: readonly string[] = []): Promise<VictoriaMetrics> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-victoria-metrics-'))
    const port = await freePort()
    const options = [
      `-storageDataPath=${join(directory, 'data')}`,
      `-httpListenAddr=127.0.0.1:${port}`,
      '-memory.allowedBytes=128MiB',
      '-retentionPeriod=100y',
      ...flags,
    ]
    const child = spawn(found ?? '', options, { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', text => {
      said = (said + text).slice(-4000)
    })
    const started = new VictoriaMetrics(child, port, directory)
    try {
      await until(
        () => `VictoriaMetrics answers:\n${said}`,
        30_000,
        async () => (await call(port, '/health').catch(() => undefined))?.status === 200,
      )
    } catch (error) {
      await started.close()
      throw error
    }
    return started
  }

  /** What `otlp.endpoint` is to be for `http/protobuf`. */
  get otlpUrl(): string {
    return `http://127.0.0.1:${this.port}/opentelemetry`
  }

  /** All that it was told of the series that a selector of MetricsQL matches, as it was told. */
  async series(selector: string): Promise<StoredSeries[]> {
    // What came a moment ago is not found before it is flushed.
    await call(this.port, '/internal/force_flush')
    const { status, body } = await call(this.port, `/api/v1/export?match[]=${encodeURIComponent(selector)}`)
    if (status !== 200) throw new Error(`VictoriaMetrics said ${status} to ${selector}: ${body}`)
    const lines = body.toString().split('\n')
    return lines.filter(line => line !== '').map(line => JSON.parse(line) as StoredSeries)
  }

  /** What a query gives now, in the form of Prometheus (HTTP API, "Instant queries"). */
  async query(expression: string): Promise<
    readonly {
      readonly metric: Readonly<Record<string, string>>
      readonly value: readonly [seconds: number, value: string]
    }[]
  > {
    const { status, body } = await call(this.port, `/api/v1/query?query=${encodeURIComponent(expression)}`)
    if (status !== 200) throw new Error(`VictoriaMetrics said ${status} to ${expression}: ${body}`)
    const { data } = JSON.parse(body.toString()) as { data: { result: [] } }
    return data.result
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = new Promise(resolve => this.#child.once('exit', resolve))
      this.#child.kill()
      await gone
    }
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
