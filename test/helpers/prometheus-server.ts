// A real Prometheus of Debian: the referee of what targets, relabelling and configurations come to.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { debianProgram, withoutProgram } from './debian-program.ts'
import { call } from './http.ts'
import { freePort, pause } from './program.ts'

const found = debianProgram({ package: 'prometheus', path: 'usr/bin/prometheus' })
const foundTool = debianProgram({ package: 'prometheus', path: 'usr/bin/promtool' })

export const prometheusProgram = found ?? ''
export const promtoolProgram = foundTool ?? ''

/** Why there is no Prometheus to compare with, for `skip`; false where there is one. */
export const withoutPrometheus: string | false = withoutProgram(found && foundTool, 'prometheus')

/** A target as Prometheus tells it (HTTP API, "Targets"). */
export interface PrometheusTarget {
  readonly scrapePool: string
  readonly scrapeUrl: string
  readonly labels: Readonly<Record<string, string>>
  readonly discoveredLabels: Readonly<Record<string, string>>
  readonly scrapeInterval: string
  readonly scrapeTimeout: string
  readonly health: 'unknown' | 'up' | 'down'
  readonly lastError: string
}

export interface PrometheusTargets {
  readonly activeTargets: readonly PrometheusTarget[]
  readonly droppedTargets: readonly Pick<PrometheusTarget, 'discoveredLabels'>[]
}

export interface PrometheusServer {
  readonly port: number
  targets(): Promise<PrometheusTargets>
  /** What a query gives now (HTTP API, "Instant queries"). */
  query(expression: string): Promise<readonly { metric: Record<string, string>; value: [number, string] }[]>
  /** What it wrote so far. */
  log(): string
  close(): Promise<void>
}

/** Starts one with a configuration, which may have the form of JSON, and resolves when it is ready. */
export async function startPrometheus(
  configuration: unknown,
  flags: readonly string[] = [],
  program: string = prometheusProgram,
): Promise<PrometheusServer> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-prometheus-'))
  const file = join(folder, 'prometheus.yml')
  writeFileSync(file, typeof configuration === 'string' ? configuration : JSON.stringify(configuration))
  const port = await freePort()
  const child = spawn(
    program,
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      ...flags,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-1024 * 1024)
  })
  let ended = false
  const end = new Promise<void>(resolve => {
    child.once('error', () => resolve())
    child.once('close', () => resolve())
  }).then(() => {
    ended = true
  })
  const close = async () => {
    child.kill('SIGKILL')
    await end
    rmSync(folder, { recursive: true, force: true })
  }
  const ask = async (path: string) => {
    const { status, body } = await call(port, path)
    if (status !== 200) throw new Error(`Prometheus answered ${path} with ${status}: ${body}`)
    return (JSON.parse(body.toString()) as { data: unknown }).data
  }
  const isReady = () =>
    call(port, '/-/ready').then(
      ({ status }) => status === 200,
      () => false,
    )
  const deadline = performance.now() + 60_000
  while (!(await isReady())) {
    if (ended || performance.now() > deadline) {
      await close()
      throw new Error(`Prometheus does not start:\n${log}`)
    }
    await pause(50)
  }
  return {
    port,
    targets: () => ask('/api/v1/targets?state=any') as Promise<PrometheusTargets>,
    query: async expression => {
      const data = await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)
      return (data as { result: [] }).result
    },
    log: () => log,
    close,
  }
}
