import { useEffect, useState } from 'preact/hooks'

const restMs = 150

/**
 * A value after it has been stable for a moment; immediately if `of` has changed. For work that need not follow each
 * step of a movement.
 */
export function useSettled<T>(value: T, of: unknown): T {
  const [settled, settle] = useState({ value, of })
  useEffect(() => {
    const timer = setTimeout(() => settle({ value, of }), restMs)
    return () => clearTimeout(timer)
  }, [value, of])
  return settled.of === of ? settled.value : value
}
