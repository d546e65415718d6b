// Makes foreign text safe for a terminal or a file.

/** Longer text is cut, so that a name cannot push everything else off the screen. */
const longest = 4096

/** Line ends, controls, bidirectional controls, and code points that are not characters. */
const unsafe = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cn}\ufeff]/gu
const plain = /^[\x20-\x7e]*$/
/** ASCII equivalents. */
const spelled: Readonly<Record<string, string>> = {
  '→': '->',
  '←': '<-',
  '↑': '^',
  '↓': 'v',
  '·': '-',
  '–': '-',
  '—': '-',
  '×': 'x',
  µ: 'u',
  μ: 'u',
  '’': "'",
  '‘': "'",
  '“': '"',
  '”': '"',
  '…': '...',
  '≥': '>=',
  '≤': '<=',
  '\u00a0': ' ',
}

/**
 * One line that is safe on a terminal: control characters, including line ends, become `\ufffd`. Without `unicode` the
 * result is ASCII, and characters without an ASCII equivalent become `?`.
 */
export function terminalText(text: string, unicode: boolean): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text
  if (plain.test(cut)) return cut
  const line = cut.replace(/\r\n|[\t\n\r\v\f]/g, ' ')
  if (unicode) return line.replace(unsafe, '\ufffd')
  return line.replace(/[^\x20-\x7e]/gu, sign => spelled[sign] ?? '?')
}

/** JSON does not escape these, but terminals obey them: DEL, controls beyond ASCII, bidirectional controls. */
const unsafeInJson = /[\x7f-\x9f\u2028\u2029\p{Bidi_Control}\ufeff]/gu

/** Equivalent JSON that is safe on a terminal. */
export function terminalJson(json: string): string {
  return json.replace(unsafeInJson, sign => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** East Asian wide and fullwidth characters (UAX #11), and emoji. */
const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u
const none = /[\p{Mn}\p{Me}\p{Cf}]/u

/** Columns of a line of `terminalText`. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const sign of text) width += none.test(sign) ? 0 : wide.test(sign) ? 2 : 1
  return width
}

/** Truncates a line to a number of columns, with a mark if it was longer. */
export function fitted(text: string, columns: number): string {
  if (columns <= 0) return ''
  if (widthOf(text) <= columns) return text
  const mark = plain.test(text) ? '~' : '…'
  let kept = ''
  let width = 0
  for (const sign of text) {
    const own = widthOf(sign)
    if (width + own > columns - 1) break
    kept += sign
    width += own
  }
  return kept + mark
}

/** Pads or truncates to exactly `columns`, left-aligned. */
export function padRight(text: string, columns: number): string {
  const fitting = fitted(text, columns)
  return fitting + ' '.repeat(Math.max(0, columns - widthOf(fitting)))
}

/** The same, right-aligned. */
export function padLeft(text: string, columns: number): string {
  const fitting = fitted(text, columns)
  return ' '.repeat(Math.max(0, columns - widthOf(fitting))) + fitting
}

/** Wraps text into lines of at most `room` characters; a longer word gets its own line. */
export function wrapped(text: string, room: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > room) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
