// What a screen reader is told of changes that nobody asked for: politely, and not more than once in two seconds.

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
