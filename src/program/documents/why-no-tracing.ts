import { traces, whyOff } from '../agent/kernel-parts.ts'
import { Tracing, type TracingFault } from '../agent/tracing.ts'
import type { DocumentContext } from './document-context.ts'

/** Why tracing is not running, and how to fix it; undefined if it is running. */
export function whyNoTracing({
  tracing,
  loaded,
}: Pick<DocumentContext, 'tracing' | 'loaded'>): TracingFault | undefined {
  if (tracing instanceof Tracing) return undefined
  if (tracing !== undefined) return tracing
  const off = whyOff(traces, loaded().config)
  if (off !== undefined) return { reason: off.detail, hint: `${off.hint} and restart svc` }
  return {
    reason: 'it was off when svc started, and the configuration has changed since',
    hint: 'restart svc',
  }
}

/** The same as a sentence; empty if tracing is running. */
export function tracingOff(parts: Pick<DocumentContext, 'tracing' | 'loaded'>): string {
  const fault = whyNoTracing(parts)
  if (fault === undefined) return ''
  return `Tracing is not running: ${fault.reason}; ${fault.hint || 'run svc doctor traces'}.`
}
