// Finds pages, services, processes and metrics by a few letters: `/` or Ctrl K.

import { signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { MetricsDocument } from '../../src/view/api/ui/documents.ts'
import { apiUrl } from '../lib/api.ts'
import { overview } from '../lib/host.ts'
import { useDocument } from '../lib/live.ts'
import { go, hrefOf } from '../lib/route.ts'
import { pages } from '../pages/index.ts'

export const searching = signal(false)

addEventListener('keydown', event => {
  const field = (event.target as Element | null)?.closest?.('input, select, textarea, [contenteditable]')
  const asked = (event.key === '/' && !field) || (event.key === 'k' && (event.ctrlKey || event.metaKey))
  if (!asked || event.altKey) return
  event.preventDefault()
  searching.value = true
})

interface Found {
  readonly text: string
  readonly what: string
  readonly href: string
}

const mostFound = 20

export function Search() {
  const dialog = useRef<HTMLDialogElement>(null)
  // Before the next key is read, which belongs to the search.
  useLayoutEffect(() => {
    const element = dialog.current!
    if (searching.value && !element.open) element.showModal()
    if (!searching.value && element.open) element.close()
  }, [searching.value])
  return (
    <dialog
      ref={dialog}
      aria-label="Search"
      onClose={() => {
        searching.value = false
      }}
    >
      {searching.value ? <Finder /> : null}
    </dialog>
  )
}

function Finder() {
  const text = useSignal('')
  const metrics = useDocument<MetricsDocument>(apiUrl('metrics'))
  const found = find(text.value.trim().toLowerCase(), metrics.value)
  const open = (href: string) => {
    searching.value = false
    go(href)
  }
  return (
    <form
      class="stack"
      onSubmit={event => {
        event.preventDefault()
        if (found[0]) open(found[0].href)
      }}
    >
      <input
        type="search"
        aria-label="Search pages, services, processes and metrics"
        autofocus
        value={text.value}
        onInput={event => {
          text.value = event.currentTarget.value
        }}
      />
      <p class="note">Find a page, service, process or metric. Enter opens the first result.</p>
      <ul class="stack" aria-label="Results">
        {found.map(({ text: title, what, href }) => (
          <li key={href}>
            <a
              href={href}
              onClick={event => {
                event.preventDefault()
                open(href)
              }}
            >
              {title}
            </a>{' '}
            <span class="soft">{what}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 ? (
        <p class="note">No results. To see why something is missing, run svc explain NAME.</p>
      ) : null}
    </form>
  )
}

function find(text: string, metrics: MetricsDocument | undefined): readonly Found[] {
  const tick = overview.value?.tick
  const all: Found[] = [
    ...pages
      .filter(({ listed }) => listed)
      .map(({ id, title, subtitle }) => ({ text: title, what: subtitle, href: hrefOf(id) })),
    ...(tick?.services ?? []).map(({ name }) => ({
      text: name,
      what: 'service',
      href: hrefOf('service', { name }),
    })),
    ...(tick?.processes ?? []).map(({ pid, name }) => ({
      text: `${name} ${pid}`,
      what: 'process',
      href: hrefOf('logs', { pid }),
    })),
    ...(metrics?.sections ?? []).flatMap(({ families }) =>
      families.map(({ name, help }) => ({ text: name, what: help, href: hrefOf('metrics', { name }) })),
    ),
  ]
  return all.filter(each => `${each.text} ${each.what}`.toLowerCase().includes(text)).slice(0, mostFound)
}
