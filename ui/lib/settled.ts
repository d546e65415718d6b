import { useEffect, useState } from 'preact/hooks'

const restMs = 150

/** A value once it has rested for a moment; at once where `of` is another: for work that each step of a move need not wait for. */
export function useSettled<T>(value: T, of: unknown): T {
  const [settled, settle] = useState({ value, of })
  useEffect(() => {
    const timer = setTimeout(() => settle({ value, of }), restMs)
    return () => clearTimeout(timer)
  }, [value, of])
  return settled.of === of ? settled.value : value
}
