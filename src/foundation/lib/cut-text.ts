/** A text of at most `most` characters: without its end, which `…` stands for. */
export function cutEnd(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}

/** The same without its beginning. */
export function cutStart(text: string, most: number): string {
  return text.length > most ? `…${text.slice(1 - most)}` : text
}
