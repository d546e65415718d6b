// A picture with what it says in words, and the same as a table.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

export interface FigureProps {
  readonly title: string
  /** One sentence: what the picture says. */
  readonly summary: string
  /** What goes beside the title. */
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
  /** The same as a table; made when it is asked for. */
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
