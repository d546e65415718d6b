import { decimal } from '../../../foundation/lib/scanner.ts'
import type { Tree } from './collector.ts'

/** An attribute of /sys is a page at most. */
const mostCharacters = 4096

/** Trimmed text of a one-line file, possibly empty. Throws if it cannot be read, or has more lines. */
export function textAt(tree: Tree, path: string): string {
  return oneLine(tree, path, tree.text(path).trim())
}

/** The same; undefined if the file is missing. */
export function optionalTextAt(tree: Tree, path: string): string | undefined {
  const text = tree.find(path)
  return text === undefined ? undefined : oneLine(tree, path, text)
}

/** The same for a file that is never empty, such as one with a label value. */
export function someTextAt(tree: Tree, path: string): string | undefined {
  const text = optionalTextAt(tree, path)
  if (text === '') throw new Error(`cannot read ${tree.at(path)}: empty file`)
  return text
}

function oneLine(tree: Tree, path: string, text: string): string {
  if (text.length > mostCharacters || /[\x00-\x1f\x7f]/.test(text))
    throw new Error(`cannot read ${tree.at(path)}: not one line of text`)
  return text
}

/** First word of a file as a decimal number. Throws if it is not a number, or the file cannot be read. */
export function numberAt(tree: Tree, path: string): number {
  return parseNumber(tree, path, tree.text(path))
}

/** The same; undefined if the file is missing. */
export function optionalNumberAt(tree: Tree, path: string): number | undefined {
  const text = tree.find(path)
  return text === undefined ? undefined : parseNumber(tree, path, text)
}

function parseNumber(tree: Tree, path: string, text: string): number {
  const value = decimal(/^\s*(\S*)/.exec(text)![1]!)
  if (Number.isNaN(value)) throw new Error(`cannot read ${tree.at(path)}: no number`)
  return value
}
