// Empty, loading and error states: the reason, and what to do.

import type { ComponentChildren } from 'preact'
import { denied } from '../lib/api.ts'
import { Command } from './command.tsx'

export interface EmptyProps {
  readonly title: string
  /** Why it is empty, in a sentence. */
  readonly why: ComponentChildren
  /** A command to copy. */
  readonly command?: string | undefined
  readonly children?: ComponentChildren
}

export function Empty({ title, why, command, children }: EmptyProps) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{why}</p>
      {command ? <Command text={command} /> : null}
      {children}
    </div>
  )
}

/** Shown while data loads. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <div class="empty" aria-busy="true">
      <p>Loading {what} …</p>
      <div class="skeleton" />
      <div class="skeleton" />
    </div>
  )
}

export function Failed({
  what,
  error,
  isRetried = true,
}: {
  readonly what: string
  readonly error: string
  readonly isRetried?: boolean
}) {
  return (
    <div class="empty" role="alert">
      <h2>Cannot load {what}</h2>
      <p>{sentence(error)}</p>
      {isRetried && denied.value === '' ? <p>Retrying automatically.</p> : null}
    </div>
  )
}

/** Messages of the API begin in lower case. */
function sentence(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1)
}

export interface Readable {
  readonly state: 'loading' | 'live' | 'error'
  readonly value: unknown
  readonly error: string
}

/** A reading in its states: `children` if there is a value, with any error above it. */
export function Reading({
  of,
  what,
  children,
}: {
  readonly of: Readable
  readonly what: string
  readonly children: () => ComponentChildren
}) {
  if (of.value === undefined)
    return of.state === 'error' ? <Failed what={what} error={of.error} /> : <Loading what={what} />
  return (
    <>
      {of.state === 'error' ? (
        <p class="notice" role="status">
          {sentence(of.error)}; showing the last data received.
        </p>
      ) : null}
      {children()}
    </>
  )
}
