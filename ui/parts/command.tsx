import { Copy } from './copy.tsx'

/** A text to copy, usually a command, with a button. */
export function Command({ text }: { readonly text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <Copy text={text} what={text} />
    </span>
  )
}
