// Requests to the agent: documents, read once or followed line by line.

import { signal } from '@preact/signals'
import { store, stored } from './stored.ts'

const tokenKey = 'svc-token'

/** Why the agent denies access; '' if it does not. `token`: it requires one. */
export const denied = signal<'' | 'token' | 'forbidden'>('')
/** The agent's message. */
export const deniedWhy = signal('')

/** Stored for this tab only. */
export function setToken(token: string): void {
  store('sessionStorage', tokenKey, token)
  denied.value = ''
}

/** Whether a token was given in this tab. */
export function hasToken(): boolean {
  return stored('sessionStorage', tokenKey) !== null
}

/** An error answer of the agent. */
export class ApiError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** The URL of a document with its parameters; empty ones are omitted. */
export function apiUrl(
  name: string,
  parameters: Readonly<Record<string, string | number | boolean>> = {},
): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(parameters)) {
    const text = typeof value === 'boolean' ? (value ? '1' : '') : String(value)
    if (text !== '') query.set(key, text)
  }
  const text = query.toString()
  return `/ui/api/${name}${text === '' ? '' : `?${text}`}`
}

/** The exchange of a link's key for a cookie. Requests wait for it. */
let entering: Promise<void> | undefined

/**
 * Exchanges the key of the link that opened the page for a cookie, and removes the key from the address bar and the
 * history. Does nothing without a key.
 */
export function enter(): void {
  const key = /^#key=([\w-]+)$/.exec(location.hash)?.[1]
  if (key === undefined) return
  history.replaceState(null, '', location.pathname + location.search)
  entering = exchange(key)
}

async function exchange(key: string): Promise<void> {
  try {
    const response = await window.fetch('/ui/session', {
      method: 'POST',
      cache: 'no-store',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ key }),
    })
    if (response.ok) denied.value = ''
    else refusedLink.value = ((await response.json().catch(() => ({}))) as { message?: string }).message ?? ''
  } catch {
    // The agent does not answer, as every document will report.
  }
}

/** Why the link that opened the page was rejected; '' if it was accepted, or there was none. */
export const refusedLink = signal('')

async function ask(path: string, signal: AbortSignal, method = 'GET', body?: object): Promise<Response> {
  await entering
  const token = stored('sessionStorage', tokenKey)
  const response = await window.fetch(path, {
    method,
    signal,
    cache: 'no-store',
    headers: {
      ...(token !== null && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (response.ok) return response
  const said = (await response.json().catch(() => ({}))) as { message?: string }
  const message = said.message ?? `the agent answered with status ${response.status}`
  // For other paths, such as a reload while reloading is off, the error concerns only that request.
  if ((response.status === 401 || response.status === 403) && path.startsWith('/ui/api/')) {
    deniedWhy.value = message
    denied.value = response.status === 401 ? 'token' : 'forbidden'
  }
  throw new ApiError(response.status, message)
}

/** Reads a document. Rejects with a readable `Error`. */
export async function read<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await ask(path, signal)
  return (await response.json()) as T
}

/** Posts a request. Rejects with a readable `Error`. */
export async function post<T>(
  path: string,
  body?: object,
  signal: AbortSignal = new AbortController().signal,
): Promise<T> {
  const response = await ask(path, signal, 'POST', body)
  return (await response.json()) as T
}

/** Reads a text. Rejects with a readable `Error`. */
export async function readText(path: string): Promise<string> {
  return (await ask(path, new AbortController().signal)).text()
}

/** Calls `line` with each line of a followed document; resolves at its end. */
export async function readLines<T>(
  path: string,
  signal: AbortSignal,
  line: (value: T) => void,
): Promise<void> {
  const response = await ask(path, signal)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const texts = (rest + value).split('\n')
    rest = texts.pop()!
    for (const text of texts) if (text !== '') line(JSON.parse(text) as T)
  }
}
