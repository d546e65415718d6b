// A trace with computed values, in numbers and words.

import type { TraceDocument } from '../../../src/view/api/ui/documents.ts'
import { duration } from '../../lib/format.ts'
import { criticalPath, gapsOf, type Span, type Stretch, type Tree, treeOf } from './waterfall.ts'

/** A trace with computed values. */
export interface Drawn {
  readonly trace: TraceDocument
  readonly tree: Tree
  readonly path: readonly Stretch[]
  readonly gaps: readonly Stretch[]
  /** By span: milliseconds on the critical path. */
  readonly critical: ReadonlyMap<number, number>
}

export function drawnOf(trace: TraceDocument): Drawn {
  const tree = treeOf(trace.spans)
  const path = criticalPath(tree, trace.duration_ms)
  const critical = new Map<number, number>()
  for (const { span, from, to } of path) critical.set(span, (critical.get(span) ?? 0) + to - from)
  return { trace, tree, path, gaps: gapsOf(tree, trace.duration_ms), critical }
}

/** `32 ms in GET /cart of checkout, without a call`. */
export function gapText({ spans }: Tree, { span, from, to }: Stretch): string {
  const long = duration(to - from)
  const inside = spans[span]
  return inside === undefined
    ? `${long} without observed activity`
    : `${long} in ${inside.name} of ${inside.service}, without a call`
}

/** The subject of a span, if its name does not contain it; '' if unknown. */
export function subjectOf({ name, attributes }: Span): string {
  for (const key of subjects) {
    const value = attributes[key]
    if (typeof value !== 'string' || value === '') continue
    const subject = value.replace(/^[a-z]+:\/\/[^/]*/, '')
    return name.includes(subject) ? '' : subject.slice(0, 120)
  }
  return ''
}

const subjects = ['url.path', 'url.full', 'db.query.text', 'messaging.destination.name', 'dns.question.name']

/** Remarks on the position of a span, in words. */
export function oddityText(tree: Tree, i: number): string {
  const span = tree.spans[i]!
  switch (tree.oddity[i]) {
    case 'lost':
      return 'parent missing'
    case 'circle':
      return 'cycle of parents, broken here'
    case 'early':
      return 'starts before its parent: clocks differ'
    default:
      return span.estimated_parent ? 'estimated parent' : ''
  }
}
