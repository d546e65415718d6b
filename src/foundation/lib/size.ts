const prefixes = ['', 'k', 'm', 'g', 't', 'p']

/**
 * Parses a size: `256Mi` and `256MiB` use 1024, `500M` and `500MB` use 1000, `4096` is bytes. Undefined if invalid, or
 * too large for an exact double.
 */
export function parseSize(text: string): number | undefined {
  const match = /^(\d{1,16}(?:\.\d{1,9})?) ?(?:([kmgtp])(i)?)?b?$/i.exec(text)
  if (!match) return undefined
  const base = match[3] ? 1024 : 1000
  const bytes = Math.round(Number(match[1]) * base ** prefixes.indexOf((match[2] ?? '').toLowerCase()))
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** The shortest exact size in units of 1024: `32Mi`, `1536Ki`, or plain bytes. */
export function formatSize(bytes: number): string {
  const units = ['Pi', 'Ti', 'Gi', 'Mi', 'Ki']
  for (let i = 0; i < units.length; i++) {
    const unit = 1024 ** (units.length - i)
    if (bytes >= unit && bytes % unit === 0) return `${bytes / unit}${units[i]}`
  }
  return String(bytes)
}
