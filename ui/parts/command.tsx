import { useSignal } from '@preact/signals'

/** A text to be used elsewhere, a command mostly, with a button that copies it. */
export function Command({ text }: { readonly text: string }) {
  const copied = useSignal(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      copied.value = true
      setTimeout(() => {
        copied.value = false
      }, 1500)
    } catch {
      // Not allowed, without TLS for example: the text can be selected.
    }
  }
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${text}`}>
        {copied.value ? 'Copied' : 'Copy'}
      </button>
    </span>
  )
}
