// Finds keys that no code reads. A key is declared as a property `name: key(…)`; it is read where a property of the
// configuration's type is accessed or destructured, which the type checker traces back to that declaration, through
// Infer<…> and any alias or part of it. If a file has an interface of its own for a branch, reads of its members count
// for keys of the branch that has all of them. Code that declares, checks or shows the configuration does not count as
// a reader.
import { join, relative } from 'node:path'
import type { Node, SourceFile } from 'typescript/unstable/ast'
import {
  isBindingElement,
  isElementAccessExpression,
  isIdentifier,
  isObjectBindingPattern,
  isPropertyAccessExpression,
  isPropertySignatureDeclaration,
  isStringLiteral,
} from 'typescript/unstable/ast/is'
import { API, type Checker, type Project, type Symbol as Property } from 'typescript/unstable/sync'
import { type Declared, declaredBy, walk } from './declared-keys.ts'

const readers =
  /^src\/(?!config\/(?:schema|validate|check-|json-schema|redact|not-built|changes)|foundation\/schema\/|.*(?:\/settings|\.test)\.ts$)/
/** Lists by path which of two keys wins. */
const byPath = 'src/config/effective.ts'

/** Faults of the project of `root`/tsconfig.json: `file:line: key`. */
export function unreadKeys(root: string): string[] {
  const api = new API({ cwd: root })
  try {
    const config = join(root, 'tsconfig.json')
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config)!
    const files = project.program
      .getSourceFileNames()
      .filter(name => relative(root, name).startsWith('src/') && !name.endsWith('.test.ts'))
      .map(name => project.program.getSourceFile(name)!)
    const unread = new Map<string, Declared>()
    for (const file of files)
      walk(file, node => {
        const found = declaredBy(node, file, relative(root, file.fileName))
        if (found !== undefined) unread.set(idOf(node), found)
      })
    const names = new Set([...unread.values()].map(({ name }) => name))
    const members: Member[] = []
    for (const file of files) {
      const path = relative(root, file.fileName)
      if (!readers.test(path)) continue
      for (const property of propertiesRead(project.checker, file, names))
        for (const declaration of property.declarations)
          if (!unread.delete(`${declaration.index} ${declaration.path}`) && isMember(declaration, project))
            members.push(memberOf(declaration.resolve()!))
      if (path === byPath)
        for (const [id, { path: chain }] of unread)
          if (new RegExp(`'(?:[\\w.]+\\.)?${chain}'`).test(file.text)) unread.delete(id)
    }
    for (const [id, { name, siblings }] of unread)
      if (members.some(each => each.name === name && each.all.every(other => siblings.has(other))))
        unread.delete(id)
    return [...unread.values()].map(({ name, file, end }) => {
      const line = file.text.slice(0, end).split('\n').length
      return `${relative(root, file.fileName)}:${line}: no code reads the key "${name}"`
    })
  } finally {
    api.close()
  }
}

/** The properties with these names that a file reads. */
function propertiesRead(checker: Checker, file: SourceFile, names: ReadonlySet<string>): Property[] {
  const nodes: Node[] = []
  const taken: { readonly of: Node; readonly name: string }[] = []
  const computed: { readonly of: Node; readonly by: Node }[] = []
  walk(file, node => {
    if (isPropertyAccessExpression(node) && isIdentifier(node.name) && names.has(node.name.text))
      nodes.push(node.name)
    else if (isElementAccessExpression(node)) {
      const by = node.argumentExpression
      if (!isStringLiteral(by)) computed.push({ of: node.expression, by })
      else if (names.has(by.text)) taken.push({ of: node.expression, name: by.text })
    } else if (isBindingElement(node) && isObjectBindingPattern(node.parent)) {
      const name = node.propertyName ?? node.name
      if (name && isIdentifier(name) && names.has(name.text)) taken.push({ of: node.parent, name: name.text })
    }
  })
  // `${name}_file` and the like: one of a few words.
  const keys = checker.getTypeAtLocation(computed.map(({ by }) => by))
  for (const [i, { of }] of computed.entries())
    for (const each of keys[i]?.isUnionType() ? (keys[i].getTypes() ?? []) : keys[i] ? [keys[i]] : [])
      if (each.isStringLiteralType() && names.has(each.value)) taken.push({ of, name: each.value })
  const types = checker.getTypeAtLocation(taken.map(({ of }) => of))
  const found = taken.map(({ name }, i) => types[i] && checker.getPropertyOfType(types[i], name))
  return [...checker.getSymbolAtLocation(nodes), ...found].filter(each => each !== undefined)
}

/** A member of a file's own interface, and the names of all its members. */
interface Member {
  readonly name: string
  readonly all: readonly string[]
}

function isMember({ path }: { readonly path: string }, { program }: Project): boolean {
  return !path.includes('/node_modules/') && !program.isSourceFileDefaultLibrary(program.getSourceFile(path)!)
}

function memberOf(node: Node): Member {
  const names: string[] = []
  node.parent?.forEachChild(each => {
    if (isPropertySignatureDeclaration(each) && isIdentifier(each.name)) names.push(each.name.text)
  })
  const name = isPropertySignatureDeclaration(node) && isIdentifier(node.name) ? node.name.text : ''
  // A single word such as `enabled` does not identify the branch.
  return { name: names.length > 1 || name.includes('_') ? name : '', all: names }
}

/** A node as identified by handles of declarations: its number and its file. */
function idOf(node: Node): string {
  const [index, , ...path] = (node as Node & { readonly id: string }).id.split('.')
  return `${index} ${path.join('.')}`
}
