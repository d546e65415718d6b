// The location: path and query of the URL, so that every view has a URL and the back button works.

import { computed, signal } from '@preact/signals'

const base = '/ui/'

const url = signal(new URL(location.href))
addEventListener('popstate', () => {
  url.value = new URL(location.href)
})

/** Name of the page; '' if the URL has none. */
export const page = computed(() => url.value.pathname.slice(base.length).split('/')[0] ?? '')

/** A parameter of the URL, otherwise `fallback`. Components that read it are updated. */
export function parameter(name: string, fallback = ''): string {
  return url.value.searchParams.get(name) ?? fallback
}

/** The URL of a page with parameters; empty ones are omitted. Keeps the time window of the user. */
export function hrefOf(id: string, parameters: Readonly<Record<string, string | number>> = {}): string {
  const query = new URLSearchParams()
  const window = parameter('w')
  if (window !== '') query.set('w', window)
  for (const [name, value] of Object.entries(parameters)) if (value !== '') query.set(name, String(value))
  const text = query.toString()
  return `${base}${id}${text === '' ? '' : `?${text}`}`
}

/** Goes to a URL of this page; with `replace`, the back button skips the current one. */
export function go(href: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  const before = url.value.pathname
  url.value = new URL(location.href)
  if (before !== url.value.pathname) scrollTo(0, 0)
}

/** Sets parameters of the URL, '' removes one. While the user types, the history entry is replaced. */
export function setParameters(
  values: Readonly<Record<string, string | number>>,
  { replace = true } = {},
): void {
  const next = new URL(location.href)
  for (const [name, value] of Object.entries(values)) {
    if (value === '') next.searchParams.delete(name)
    else next.searchParams.set(name, String(value))
  }
  go(`${next.pathname}${next.search}`, { replace })
}

/** Follows links of the page without reloading it. */
export function followLinks(): void {
  addEventListener('click', event => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
      return
    const link = (event.target as Element | null)?.closest?.('a')
    if (link?.target !== '' || link.hasAttribute('download')) return
    if (link.origin !== location.origin || !link.pathname.startsWith(base)) return
    if (link.pathname.startsWith(`${base}api/`)) return
    // An anchor in this page: the browser scrolls and moves the focus.
    if (link.hash !== '' && link.pathname === location.pathname && link.search === location.search) return
    event.preventDefault()
    go(`${link.pathname}${link.search}${link.hash}`)
  })
}
