// A graphic with a summary in words and the same data as a table.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

export interface FigureProps {
  readonly title: string
  /** The content of the graphic in one sentence. */
  readonly summary: string
  /** Content next to the title. */
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
  /** The same data as a table, rendered on request. */
  readonly table: () => ComponentChildren
}

export function Figure({ title, summary, aside, children, table }: FigureProps) {
  const asTable = useSignal(false)
  const id = useId()
  return (
    <figure class="figure" aria-labelledby={id}>
      <figcaption>
        <h2 id={id}>{title}</h2>
        {aside}
        <button
          type="button"
          class="quiet"
          onClick={() => {
            asTable.value = !asTable.value
          }}
        >
          {asTable.value ? 'Show as graphic' : 'Show as table'}
        </button>
      </figcaption>
      <p class="summary">{summary}</p>
      {asTable.value ? table() : children}
    </figure>
  )
}
