import { Copy } from './copy.tsx'

/** A text to be used elsewhere, a command mostly, with a button that copies it. */
export function Command({ text }: { readonly text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <Copy text={text} what={text} />
    </span>
  )
}
