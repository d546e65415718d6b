// Traces: durations of requests over time, matching traces, and one of them.

import './traces.css'
import { parameter } from '../lib/route.ts'
import { FoundTraces } from './traces/found-traces.tsx'
import { TraceView } from './traces/trace-view.tsx'

export default function TracesPage() {
  const trace = parameter('trace')
  return trace === '' ? <FoundTraces /> : <TraceView key={trace} id={trace} />
}
