// The sources of the pipeline, including those that are off or failed.

import type { PipelineLine } from '../../view/api/ui/documents.ts'
import { off } from '../agent/off.ts'
import type { State, SubsystemState } from '../agent/subsystem.ts'
import type { DocumentContext } from './document-context.ts'

export type PipelineNode = PipelineLine['nodes'][number]

/** Items reported by a source since the start, by signal; if absent, those that no other source has. */
export type SourceCounts = { readonly [signal in PipelineNode['signals'][number]]?: number | 'rest' }

export interface PipelineSource {
  readonly node: PipelineNode
  readonly counts: SourceCounts
}

/** Enabled sources first. At most one per signal counts the rest. */
export function pipelineSources({ states }: Pick<DocumentContext, 'states'>): PipelineSource[] {
  const all = states()
  const sources = all.flatMap(sourceOf)
  sources.splice(1, 0, measured(all))
  return sources.sort((a, b) => Number(a.node.state === 'off') - Number(b.node.state === 'off'))
}

function sourceOf({ subsystem: { source }, state }: SubsystemState): PipelineSource[] {
  if (source === undefined) return []
  const { id, name, signal, hidden = [] } = source
  const { items, facts } = state
  const node: PipelineNode = {
    id: `source:${id}`,
    kind: 'source',
    name,
    signals: [signal],
    state: nodeState(state),
    reason: reasonOf(state),
    details: facts?.() ?? [],
  }
  // Failures are never hidden.
  if (hidden.some(each => each === node.state)) return []
  return [{ node, counts: items === undefined ? {} : { [signal]: items } }]
}

function nodeState({ state, faults = [], pause = '' }: State): PipelineNode['state'] {
  if (state === 'failed') return state
  if (faults.length > 0 || pause !== '') return 'limited'
  return state === 'ok' ? 'ok' : 'off'
}

function reasonOf({ state, detail = '', hint = '', faults = [], pause = '' }: State): string {
  const reasons = [...faults.map(fault => sentence(fault.reason, fault.hint)), pause].filter(Boolean)
  return reasons.length > 0 || state === 'ok' ? reasons.join('; ') : sentence(detail, hint)
}

/** All measurements of this host, counted together. */
function measured(states: readonly SubsystemState[]): PipelineSource {
  const facts = states.flatMap(({ state }) => state.measures?.() ?? [])
  const isOn = facts.length > 0
  const { detail, hint } = off('agent.nodeexporter.enabled')
  return {
    node: {
      id: 'source:metrics',
      kind: 'source',
      name: 'metrics of this host',
      signals: ['metrics'],
      state: isOn ? 'ok' : 'off',
      reason: isOn ? '' : sentence(detail, hint),
      details: facts,
    },
    counts: isOn ? { metrics: 'rest' } : {},
  }
}

/** A reason with its fix. */
export function sentence(reason: string, hint: string): string {
  return hint === '' ? reason : `${reason}: ${hint}`
}
