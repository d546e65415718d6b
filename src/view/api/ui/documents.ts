// The documents of the live page and of the commands for a running agent, below `/ui/api/`: the types that both sides
// share. Answers are lines of JSON (NDJSON): one, or with `follow` one for each update, until the client closes the
// connection. Times end in `_ms` (since the Unix epoch unless noted otherwise), rates in `_per_s`.

import type { Of } from '../schema.ts'
import type {
  agentDocument,
  doctorDocument,
  explainDocument,
  pipelineLine,
  tapLine,
  tryDocument,
} from './agent-documents.ts'
import type {
  flameDocument,
  logsLine,
  mapLine,
  metricsDocument,
  overviewLine,
  profilesLine,
  seriesLine,
  serviceLine,
  traceDocument,
  tracesLine,
} from './host-documents.ts'

export type OverviewLine = Of<typeof overviewLine>
export type MapLine = Of<typeof mapLine>
export type ServiceLine = Of<typeof serviceLine>
export type TracesLine = Of<typeof tracesLine>
export type TraceDocument = Of<typeof traceDocument>
export type MetricsDocument = Of<typeof metricsDocument>
export type SeriesLine = Of<typeof seriesLine>
export type LogsLine = Of<typeof logsLine>
export type ProfilesLine = Of<typeof profilesLine>
export type FlameDocument = Of<typeof flameDocument>
export type PipelineLine = Of<typeof pipelineLine>
export type TapLine = Of<typeof tapLine>
export type TryDocument = Of<typeof tryDocument>
export type AgentDocument = Of<typeof agentDocument>
export type DoctorDocument = Of<typeof doctorDocument>
export type ExplainDocument = Of<typeof explainDocument>
