import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

/** Details of one thing, next to the page. Escape closes it and returns the focus. */
export function Drawer({
  title,
  onClose,
  children,
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}) {
  const box = useRef<HTMLElement>(null)
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null
    box.current?.focus()
    return () => before?.focus?.()
  }, [])
  return (
    <aside
      ref={box}
      class="drawer"
      tabIndex={-1}
      aria-label={title}
      onKeyDown={event => {
        if (event.key === 'Escape') onClose()
      }}
    >
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" onClick={onClose} aria-label={`Close ${title}`}>
          ✕
        </button>
      </header>
      {children}
    </aside>
  )
}
