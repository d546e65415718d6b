import { objectOf, textOf } from '../../../../../foundation/lib/json-fields.ts'
import type { MetaLabels } from './meta-labels.ts'

/** Object behind an endpoint (core v1 `ObjectReference`). */
export interface TargetRef {
  readonly kind: string
  readonly name: string
  /** Key of the pod; '' if it is not a pod. */
  readonly pod: string
}

/** Undefined if missing. */
export function readTargetRef(value: unknown, meta: MetaLabels): TargetRef | undefined {
  const { kind: written, name: named, namespace } = objectOf(value)
  const kind = meta.text(textOf(written, 253))
  const name = textOf(named, 253)
  if (name === '') return undefined
  return { kind, name, pod: kind === 'Pod' ? `${textOf(namespace, 253)}/${name}` : '' }
}
