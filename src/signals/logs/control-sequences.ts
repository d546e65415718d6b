const escapeSign = '\x1b'
/** Maximum length of titles and links; a longer one was never terminated. */
const mostString = 4096

/**
 * Text without terminal control sequences (ECMA-48, section 5.4: colours are `ESC [ 31 m`; section 5.6: titles
 * and links are `ESC ] … ESC \` or, in xterm, `… BEL`). Other bytes stay unchanged.
 */
export function withoutControlSequences(text: string): string {
  let at = text.indexOf(escapeSign)
  if (at < 0) return text
  let kept = ''
  let from = 0
  while (at >= 0) {
    const end = sequenceEnd(text, at)
    if (end > at) {
      kept += text.slice(from, at)
      from = end
    }
    at = text.indexOf(escapeSign, Math.max(end, at + 1))
  }
  return kept + text.slice(from)
}

/** End of the sequence that starts at an escape; the same offset if none starts there. */
function sequenceEnd(text: string, at: number): number {
  const kind = text[at + 1]
  let end = at + 2
  if (kind === '[') {
    while (isBetween(text.charCodeAt(end), 0x30, 0x3f)) end++
    while (isBetween(text.charCodeAt(end), 0x20, 0x2f)) end++
    return isBetween(text.charCodeAt(end), 0x40, 0x7e) ? end + 1 : at
  }
  // Character sets: `tput sgr0` writes `ESC ( B` in addition to colours.
  if (kind === '(') return end < text.length ? end + 1 : at
  if (kind !== ']') return at
  for (const most = Math.min(text.length, end + mostString); end < most; end++) {
    if (text[end] === '\x07') return end + 1
    if (text[end] === escapeSign) return text[end + 1] === '\\' ? end + 2 : at
  }
  return at
}

function isBetween(code: number, low: number, high: number): boolean {
  return code >= low && code <= high
}
