import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { parameter, setParameters } from '../lib/route.ts'
import { Field } from './small.tsx'

const restMs = 250
/** As the API takes them. */
const mostLength = 255

/** A field whose text is a parameter of the URL, once no more is typed. */
export function TypedField({
  label,
  name,
  digits = false,
}: {
  readonly label: string
  readonly name: string
  /** It is a whole number. */
  readonly digits?: boolean
}) {
  const value = parameter(name)
  const typed = useSignal(value)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => {
    // Changed elsewhere: by the back button, or a filter that was taken off.
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
