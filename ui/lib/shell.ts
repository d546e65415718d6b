// Foreign text within commands that people copy into a shell.

/** One word of a shell, whatever it holds. */
export function quoted(text: string): string {
  // What begins with a dash would be an option.
  if (/^[\w./:@%+][\w./:@%+=-]*$/.test(text)) return text
  return `${text.startsWith('-') ? '-- ' : ''}'${text.replaceAll("'", "'\\''")}'`
}
