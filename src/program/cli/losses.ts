import type { PipelineLine } from '../../view/api/ui/documents.ts'

export interface Loss {
  readonly signal: string
  readonly reason: string
  readonly items: number
  /** Configured by the user, or without a receiver: not a loss. */
  readonly isIntended: boolean
}

/** Dropped and rejected items since the start: losses first, then by number. */
export function lossesOf({ signals }: Pick<PipelineLine, 'signals'>): readonly Loss[] {
  return signals
    .flatMap(({ signal, dropped, rejected }) => [
      ...dropped.map(({ reason, items, intended }) => ({ signal, reason, items, isIntended: intended })),
      { signal, reason: 'rejected by the receiver', items: rejected, isIntended: false },
    ])
    .filter(({ items }) => items > 0)
    .toSorted((a, b) => Number(a.isIntended) - Number(b.isIntended) || b.items - a.items)
}

/** Explanation of a reason that is not a loss; empty if its name is clear. */
export function meaningOf({ reason }: Loss): string {
  return reason === 'no_endpoint' ? ' (no exporter configured: set otlp.endpoint)' : ''
}
