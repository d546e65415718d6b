import type { PipelineLine } from '../../view/api/ui/documents.ts'

export interface Loss {
  readonly signal: string
  readonly reason: string
  readonly items: number
  /** Somebody asked for it, or nobody was to receive it: no loss. */
  readonly isIntended: boolean
}

/** What was dropped or refused since the start: what was lost stands first, then the most. */
export function lossesOf({ signals }: Pick<PipelineLine, 'signals'>): readonly Loss[] {
  return signals
    .flatMap(({ signal, dropped, rejected }) => [
      ...dropped.map(({ reason, items, intended }) => ({ signal, reason, items, isIntended: intended })),
      { signal, reason: 'rejected by the receiver', items: rejected, isIntended: false },
    ])
    .filter(({ items }) => items > 0)
    .toSorted((a, b) => Number(a.isIntended) - Number(b.isIntended) || b.items - a.items)
}

/** What a reason means where that is no loss; empty where its name says it. */
export function meaningOf({ reason }: Loss): string {
  return reason === 'no_endpoint' ? ' (no exporter configured: set otlp.endpoint)' : ''
}
