import { useRef } from 'preact/hooks'
import type { Reading } from './live.ts'

/** A reading that shows its last value until the next one arrives, so that a changed query does not flicker. */
export function useLastValue<T>(reading: Reading<T>): Reading<T> {
  const last = useRef<T | undefined>(undefined)
  if (reading.value !== undefined) last.current = reading.value
  if (reading.value !== undefined || reading.missing || last.current === undefined) return reading
  return { ...reading, value: last.current }
}
