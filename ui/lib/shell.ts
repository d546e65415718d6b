// Foreign text within commands that people copy into a shell.

/** Quotes a text as one word of a shell. */
export function quoted(text: string): string {
  // A leading dash would make it an option.
  if (/^[\w./:@%+][\w./:@%+=-]*$/.test(text)) return text
  return `${text.startsWith('-') ? '-- ' : ''}'${text.replaceAll("'", "'\\''")}'`
}
