// Polite announcements for screen readers, at most one in two seconds.

import { signal } from '@preact/signals'

export const announcement = signal('')

const restMs = 2000
let next = ''
let timer: ReturnType<typeof setTimeout> | undefined

export function announce(text: string): void {
  next = text
  if (timer !== undefined) return
  announcement.value = text
  timer = setTimeout(() => {
    timer = undefined
    if (next !== announcement.value) announce(next)
  }, restMs)
}
