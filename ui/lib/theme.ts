// Light and dark: by the system, or by the user's choice.

import { effect, signal } from '@preact/signals'
import { store, stored } from './stored.ts'

const key = 'svc-theme'
export type Theme = 'system' | 'light' | 'dark'

export const theme = signal<Theme>((stored('localStorage', key) as Theme | null) ?? 'system')

const system = matchMedia('(prefers-color-scheme: dark)')

/** Changes with the colours, so that canvases repaint. */
export const palette = signal(0)
system.addEventListener('change', () => palette.value++)

effect(() => {
  const { value } = theme
  if (value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = value
  store('localStorage', key, value === 'system' ? '' : value)
  palette.value = palette.peek() + 1
})
