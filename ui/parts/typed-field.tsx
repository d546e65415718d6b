import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { parameter, setParameters } from '../lib/route.ts'
import { Field } from './small.tsx'

const restMs = 250
/** As accepted by the API. */
const mostLength = 255

/** A field bound to a parameter of the URL, set when the user stops typing. */
export function TypedField({
  label,
  name,
  digits = false,
}: {
  readonly label: string
  readonly name: string
  /** It must be a whole number. */
  readonly digits?: boolean
}) {
  const value = parameter(name)
  const typed = useSignal(value)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => {
    // Changed elsewhere: by the back button, or a removed filter.
    if (timer.current === undefined) typed.value = value
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  const take = (text: string) => {
    typed.value = digits ? text.replace(/\D/g, '').slice(0, 8) : text
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      timer.current = undefined
      setParameters({ [name]: typed.value })
    }, restMs)
  }
  return (
    <Field label={label}>
      <input
        type="search"
        inputMode={digits ? 'numeric' : 'search'}
        size={digits ? 6 : 18}
        maxLength={mostLength}
        value={typed.value}
        onInput={event => take(event.currentTarget.value)}
      />
    </Field>
  )
}
