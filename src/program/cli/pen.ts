// Colours of printed text.

/** Style of a piece of text. Never the only indication: the text must suffice. */
export type Look = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'inverse'

const codes: Readonly<Record<Look, string>> = {
  bold: '1',
  dim: '90',
  red: '31',
  green: '32',
  yellow: '33',
  cyan: '36',
  inverse: '7',
}

/** Writes text with a style, or plain without colours. */
export type Pen = (text: string, look?: Look) => string

export function penOf(color: boolean): Pen {
  return (text, look) =>
    color && look !== undefined && text !== '' ? `\x1b[${codes[look]}m${text}\x1b[0m` : text
}
