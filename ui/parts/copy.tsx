import { useSignal } from '@preact/signals'

/** A button that copies the text next to it. */
export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  const copied = useSignal(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      copied.value = true
      setTimeout(() => {
        copied.value = false
      }, 1500)
    } catch {
      // Not allowed, for example without TLS: the text can be selected.
    }
  }
  return (
    <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${what}`}>
      {copied.value ? 'Copied' : 'Copy'}
    </button>
  )
}
