const prefixes = ['', 'k', 'm', 'g', 't', 'p']

/**
 * Bytes of a size text: `256Mi` and `256MiB` count in 1024s, `500M` and `500MB` in 1000s, `4096` is bytes.
 * Undefined when it is none, or more bytes than a double counts exactly.
 */
export function parseSize(text: string): number | undefined {
  const match = /^(\d{1,16}(?:\.\d{1,9})?) ?(?:([kmgtp])(i)?)?b?$/i.exec(text)
  if (!match) return undefined
  const base = match[3] ? 1024 : 1000
  const bytes = Math.round(Number(match[1]) * base ** prefixes.indexOf((match[2] ?? '').toLowerCase()))
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** The shortest exact size text in 1024s: `32Mi`, `1536Ki`, or plain bytes. */
export function formatSize(bytes: number): string {
  const units = ['Pi', 'Ti', 'Gi', 'Mi', 'Ki']
  for (let i = 0; i < units.length; i++) {
    const unit = 1024 ** (units.length - i)
    if (bytes >= unit && bytes % unit === 0) return `${bytes / unit}${units[i]}`
  }
  return String(bytes)
}
