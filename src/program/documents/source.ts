// The documents of the live page and of the commands for a running agent.

import type { UiSource } from '../../view/api/types.ts'
import { agentPage } from './agent.ts'
import { doctor } from './doctor.ts'
import type { DocumentContext } from './document-context.ts'
import { explain } from './explain.ts'
import { logs } from './logs.ts'
import { map } from './map.ts'
import { metrics, series } from './metrics.ts'
import { overview } from './overview.ts'
import { pipeline } from './pipeline.ts'
import { flame, profiles } from './profiles.ts'
import { service } from './service.ts'
import { tap } from './tap.ts'
import { trace, traces } from './traces.ts'
import { tryRules } from './try.ts'

export function uiSource(parts: DocumentContext): UiSource {
  return {
    overview: seconds => overview(parts, seconds),
    map: seconds => map(parts, seconds),
    service: name => service(parts, name),
    traces: query => traces(parts, query),
    trace: id => trace(parts, id),
    metrics: () => metrics(parts),
    series: name => series(parts, name),
    logs: query => logs(parts, query),
    profiles: (kind, of) => profiles(parts, kind, of),
    flame: query => flame(parts, query),
    pipeline: () => pipeline(parts),
    tap: query => tap(parts, query),
    tryRules: query => tryRules(parts, query),
    agent: () => agentPage(parts),
    doctor: () => doctor(parts),
    explain: target => explain(parts, target),
  }
}
