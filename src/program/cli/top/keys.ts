/** Sequences of terminals (xterm, also in application mode, rxvt and the console) and control characters. */
const names: Readonly<Record<string, string>> = {
  '\x1b[A': 'up',
  '\x1bOA': 'up',
  '\x1b[B': 'down',
  '\x1bOB': 'down',
  '\x1b[C': 'right',
  '\x1bOC': 'right',
  '\x1b[D': 'left',
  '\x1bOD': 'left',
  '\x1b[5~': 'page-up',
  '\x1b[6~': 'page-down',
  '\x1b[H': 'home',
  '\x1bOH': 'home',
  '\x1b[1~': 'home',
  '\x1b[7~': 'home',
  '\x1b[F': 'end',
  '\x1bOF': 'end',
  '\x1b[4~': 'end',
  '\x1b[8~': 'end',
  '\x1b': 'escape',
  '\r': 'enter',
  '\n': 'enter',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\x03': 'ctrl-c',
  '\x1a': 'ctrl-z',
  '\x15': 'ctrl-u',
}

/** A control sequence (ECMA-48, section 5.4), a three-character sequence, or a single character. */
const one = /\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1bO[\x40-\x7e]|./gsu

/** The keys in the input of a terminal, by name or as the typed character. Unknown sequences are ignored. */
export function keysOf(text: string): string[] {
  const keys: string[] = []
  for (const [sequence] of text.matchAll(one)) {
    const name = names[sequence]
    if (name !== undefined) keys.push(name)
    else if (/^[^\p{Cc}\p{Cs}]$/u.test(sequence)) keys.push(sequence)
  }
  return keys
}
