// Configuration in, running agent out: starts the list of subsystems, and serves all of them.

import { setTimeout as delay } from 'node:timers/promises'
import { errorText } from '../foundation/lib/logger.ts'
import { ExitCode, StartError } from '../foundation/lib/start-error.ts'
import type { DrainResult } from '../pipeline/pipeline.ts'
import { BrowserKey } from '../view/api/browser-key.ts'
import type { Operation } from '../view/api/operation.ts'
import { operations } from '../view/api/routes.ts'
import type { AgentView, Browsers, RunningAgent } from '../view/api/types.ts'
import { banner } from './agent/banner.ts'
import { dropLoads } from './agent/begin-loads.ts'
import { failureText } from './agent/kernel-state.ts'
import { contentsOf } from './agent/reload.ts'
import type { StartOptions } from './agent/subsystem.ts'
import { openLivePage } from './documents/live-page.ts'
import { agentView, drainMs } from './documents/view.ts'
import { reloadOf, subsystemsOf } from './subsystems/by-name.ts'
import { exporting } from './subsystems/exporting.ts'
import { hostMetrics } from './subsystems/host-metrics.ts'
import { subsystems } from './subsystems/index.ts'
import { lastRun } from './subsystems/last-run.ts'
import { livePage } from './subsystems/live-page.ts'
import { managementApi } from './subsystems/management-api.ts'
import { Running } from './subsystems/running.ts'
import { selfTraces } from './subsystems/self-traces.ts'

/** Longest wait at start for the files named by keys, in milliseconds. */
const mostContentMs = 1000

/**
 * Starts everything that the configuration enables. A failure is shown in the banner and in `/ready`, and stops nothing
 * else.
 */
export async function startAgent(options: StartOptions): Promise<RunningAgent> {
  const { loaded } = options
  // Before any subsystem reads these files. One that hangs, as on a network file system, must not block the start.
  const contents = contentsOf(loaded)
  const running = new Running(subsystems, options, contents)
  // From here on, the next run can report how this one ended.
  const record = running.of(lastRun)
  await Promise.race([contents, delay(mostContentMs, undefined, { ref: false })])
  try {
    const starting = running.of(selfTraces).begin('start')
    await running.create()
    dropLoads()
    if (loaded.config.agent.ebpf.required) refuseWithoutEbpf(running)
    const view = await serve(running)
    await running.start()
    starting.end()
    return agentOf(running, view)
  } catch (error) {
    await end(running, 0)
    record.end('start_failed', errorText(error))
    throw error
  }
}

function agentOf(running: Running, view: AgentView): RunningAgent {
  const { options, config } = running
  const { api } = running.of(managementApi)
  let stopping: Promise<void> | undefined
  const stop = async () => {
    options.log.info('drained', { ...(await end(running, drainMs(running.loaded().config))) })
  }
  return {
    view,
    banner: () => banner(running.states(), running.loaded()),
    links: () => {
      const { server } = running.of(hostMetrics) ?? {}
      const page = view.ui === undefined ? [] : [{ what: 'page', url: '/ui' }]
      const paths = [
        ...page,
        { what: 'status', url: '/status' },
        { what: 'ready', url: '/ready' },
        { what: 'metrics', url: config.self_telemetry.path },
        { what: 'API', url: '/openapi.json' },
      ]
      return [
        ...(api === undefined ? [] : paths.map(({ what, url }) => ({ what, url: api.url(url) }))),
        ...(server === undefined ? [] : [{ what: 'host metrics', url: server.url('/metrics') }]),
      ]
    },
    pageLink: () => (api === undefined ? undefined : view.browsers?.link()),
    reload: cause => reloadOf(running, cause),
    ended: (cause, detail) => running.of(lastRun).end(cause, detail),
    get shutdownTimeoutMs() {
      return running.loaded().config.pipeline.operations.shutdown.timeout
    },
    stop: () => {
      stopping ??= stop()
      return stopping
    },
  }
}

/** Serves the live page, if enabled, and the management API. Rejects with a `StartError`. */
async function serve(running: Running): Promise<AgentView> {
  const { config } = running
  const { self_telemetry: settings } = config
  const own = running.of(livePage)
  const { registry } = running.metrics
  const parts = subsystemsOf(running)
  if (own.window !== undefined) own.page = openLivePage(parts, own.window, registry)
  const access = running.of(managementApi)
  const browsers: Browsers | undefined = own.page && {
    key: new BrowserKey(),
    tls: settings.tls.enabled,
    link: () => `${access.api?.url('/ui')}#key=${browsers!.key.key}`,
  }
  const view = agentView(parts, { registry, pages: running.pages(), ui: own.page?.source, browsers })
  if (!settings.enabled) return view
  await access.serve(operationsOf(view, settings.path), browsers?.key)
  if (own.window !== undefined) own.window.ownPort = access.api!.port
  return view
}

/** Stops everything; what is not delivered in time is given up. */
async function end(running: Running, withinMs: number): Promise<DrainResult | undefined> {
  await running.stop()
  let drained: DrainResult | undefined
  try {
    drained = await running.ifCreated(exporting)?.pipeline.drain(withinMs)
  } catch (error) {
    running.cannot('deliver what is queued', error)
  }
  await running.close()
  return drained
}

function operationsOf(view: AgentView, metricsPath: string): readonly Operation[] {
  try {
    return operations(view, metricsPath)
  } catch (error) {
    throw new StartError(`${errorText(error)}; change self_telemetry.path`, ExitCode.usage)
  }
}

/** Throws if an enabled eBPF part does not run. */
function refuseWithoutEbpf(running: Running): void {
  const failed = running.faults().filter(({ fails }) => fails === 'ebpf')
  if (failed.length === 0) return
  const hints = [...new Set(failed.map(({ hint }) => hint))].join('; ')
  throw new StartError(
    `cannot start: agent.ebpf.required is true and eBPF is not available: ${failureText(failed)}; ${hints}`,
    ExitCode.ebpf,
  )
}
