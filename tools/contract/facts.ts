// What tests must reach: every path and status, exit code, message and metric of the reference.

import { exitCodes } from '../../src/foundation/lib/start-error.ts'
import type { Family } from '../../src/foundation/model/collector.ts'
import { profileKinds } from '../../src/foundation/runtime/runtime-profiler.ts'
import { subsystems } from '../../src/program/subsystems/index.ts'
import { collectors, extraCollectors } from '../../src/signals/metrics/collectors/index.ts'
import { codes } from '../../src/view/api/answer.ts'
import { operations } from '../../src/view/api/routes.ts'
import type { AgentView } from '../../src/view/api/types.ts'
import { declaredSelfMetrics } from '../self-metrics-page.ts'
import { starts } from '../troubleshooting-texts.ts'
import { differences, service } from './spec.ts'

/** The operations of the management API; none is called. */
export function listedOperations() {
  const pages = subsystems.flatMap(subsystem => subsystem.pages ?? [])
  const view = {
    profiles: profileKinds,
    pages,
    ui: {},
    browsers: {},
    pageDirectory: '',
  } as unknown as AgentView
  return operations(view, '/metrics').filter(({ isFile }) => !isFile)
}

/** The declared ones: collectors that name metrics by their input have more. */
export const hostFamilies: readonly Family[] = [...collectors, ...extraCollectors].flatMap(
  ({ metrics }) => metrics,
)

/** Those required in the table: the others are known to be missing. */
export function recordedFacts(): string[] {
  const known = Object.keys({ ...differences.accepted, ...differences.pending })
  return requiredFacts().filter(fact => !known.some(mark => fact.includes(mark)))
}

/** As written by tools/testing/reached.ts. */
export function requiredFacts(): string[] {
  const silent = Object.entries(service.metrics)
    .filter(([, how]) => how.startsWith('silent '))
    .map(([name]) => `svc_${name}`)
  return [
    ...listedOperations().flatMap(({ method, path, outcomes }) =>
      Object.keys(outcomes).map(status => `${method} ${path} ${status}`),
    ),
    ...Object.keys(codes).map(status => `status ${status}`),
    ...service.endpoint.map(each => `endpoint ${each}`),
    ...Object.keys(exitCodes).map(code => `exit ${code}`),
    ...starts.map(([message]) => `log ${message}`),
    ...[...hostFamilies.map(({ name }) => name), ...Object.keys(service.host_metrics)]
      .filter((name, i, all) => all.indexOf(name) === i)
      .map(name => `host node_${name}`),
    ...declaredSelfMetrics()
      .filter(({ name }) => !silent.includes(name))
      .map(({ name }) => `metric ${name}`),
  ]
}
