import { hostname } from 'node:os'
import type { Config } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { change } from '../../foundation/lib/change.ts'
import { off } from '../agent/off.ts'
import { value } from '../agent/self-metrics.ts'
import { SelfTracer } from '../agent/self-tracing.ts'
import { fact, type Subsystem } from '../agent/subsystem.ts'
import { exporting } from './exporting.ts'

export const selfTraces: Subsystem<SelfTracer> = {
  name: 'self-tracing',
  keys: ['self_telemetry'],
  source: { id: 'self', name: 'svc’s own traces', signal: 'traces' },
  create: agent => {
    const { config, events } = agent
    const { pipeline } = agent.of(exporting)
    const tracer = new SelfTracer({
      emit: (resource, scope, span) => pipeline.intake('traces').add(resource, scope, span),
      resource: {
        serviceName: config.service_name,
        instanceId: config.instance_id,
        version: build().version,
        hostName: hostname(),
      },
      settings: settingsOf(config),
    })
    events.exported.listen(request => tracer.exportRequest(request))
    return tracer
  },
  prepare: (own, config) => change(() => own.configure(settingsOf(config))),
  state: (own, { self_telemetry: { tracing } }) =>
    tracing.enabled
      ? {
          state: 'ok',
          facts: () => [fact('spans', own.made), fact('dropped', own.lost)],
          items: own.made,
        }
      : off('self_telemetry.tracing.enabled'),
  metrics: {
    spans_collected_total: {
      collect: ({ made }, emit) => {
        if (made > 0) emit(made, 'internal')
      },
    },
    self_spans_lost_total: value(
      'Operations of the agent that were not traced for lack of memory.',
      ({ lost }) => lost,
    ),
  },
}

function settingsOf({ self_telemetry: { tracing } }: Config) {
  return { enabled: tracing.enabled, sampleRate: tracing.sample_rate }
}
