import type { Tree } from './collector.ts'

/** An attribute of /sys is a page at most. */
const mostCharacters = 4096

/**
 * An attribute of the kernel's that is shown as a label: one line of printable text. Undefined where it is not there or
 * not to be read; throws where it is anything else.
 */
export function plainText(tree: Tree, path: string): string | undefined {
  const text = tree.find(path)
  if (text === undefined) return undefined
  if (text === '' || text.length > mostCharacters || /[\x00-\x1f\x7f\ufffd]/.test(text))
    throw new Error(`cannot read ${tree.at(path)}: not one line of text`)
  return text
}

/** A number without which there is nothing to show. Throws where it is not there, not to be read, or none. */
export function requiredNumber(tree: Tree, path: string): number {
  const value = tree.number(path)
  if (value === undefined) throw new Error(`cannot read ${tree.at(path)}: not there, or not for this process`)
  return value
}
