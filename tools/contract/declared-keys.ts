// Finds declarations of keys: properties `name: key(…)` in the schema, in the settings of processors and in options of
// collectors.
import type { Node, SourceFile } from 'typescript/unstable/ast'
import {
  isArrayLiteralExpression,
  isCallExpression,
  isIdentifier,
  isObjectLiteralExpression,
  isPropertyAssignment,
} from 'typescript/unstable/ast/is'

export interface Declared {
  readonly name: string
  readonly file: SourceFile
  readonly end: number
  /** Names of the enclosing branches in the file, and its own. */
  readonly path: string
  readonly siblings: ReadonlySet<string>
}

/** A key of the schema with an effect: keys that are not built, or have a single choice, have none. */
export function declaredBy(node: Node, file: SourceFile, path: string): Declared | undefined {
  if (!isPropertyAssignment(node) || !isIdentifier(node.name)) return undefined
  const { initializer } = node
  if (!isCallExpression(initializer) || !isIdentifier(initializer.expression)) return undefined
  if (initializer.expression.text !== 'key') return undefined
  const [kind] = initializer.arguments
  const words = kind && isCallExpression(kind) ? kind.arguments[0] : undefined
  if (words && isArrayLiteralExpression(words) && words.elements.length === 1) return undefined
  const text = file.text.slice(initializer.pos, initializer.end)
  if (/,\s*(?:later|\{[^{}]*built: false[^{}]*\}),?\s*\)$/.test(text)) return undefined
  const chain = [node.name.text]
  for (let at = node.parent; at !== undefined; at = at.parent)
    if (isPropertyAssignment(at) && isIdentifier(at.name) && at.name.text !== 'keys')
      // Options of a collector are listed below its name.
      chain.unshift(at.name.text === 'options' ? /(\w+)\.ts$/.exec(path)![1]! : at.name.text)
  const around = node.parent
  const siblings = isObjectLiteralExpression(around)
    ? around.properties.map(each => ('name' in each ? each.name : undefined))
    : []
  return {
    name: node.name.text,
    file,
    end: node.end,
    path: chain.join('.'),
    siblings: new Set(siblings.map(each => (each && isIdentifier(each) ? each.text : ''))),
  }
}

export function walk(node: Node, visit: (node: Node) => void): void {
  visit(node)
  node.forEachChild(child => walk(child, visit))
}
