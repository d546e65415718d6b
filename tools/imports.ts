// Imports of TypeScript files, and the paths they name, extracted from their text.
import { readFileSync, statSync } from 'node:fs'
import { posix, resolve } from 'node:path'

/** Specifiers of imports and exports, of `import()`, `require()` and `new URL()`, and of side-effect imports. */
export const imports =
  /^(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"\n]+)['"]|\b(?:import|require|URL)\(\s*['"]([^'"\n]+)['"]|['"](node:[\w/]+)['"]/gm

/** The direct and indirect imports of each file below `root`. Paths are relative to `root`. */
export class ImportGraph {
  readonly root: string
  readonly #texts = new Map<string, string>()
  readonly #direct = new Map<string, readonly string[]>()

  constructor(root: string) {
    this.root = root
  }

  /** '' if there is no such file. */
  text(file: string): string {
    let text = this.#texts.get(file)
    if (text === undefined) {
      text = this.has(file) ? readFileSync(resolve(this.root, file), 'latin1') : ''
      this.#texts.set(file, text)
    }
    return text
  }

  has(file: string): boolean {
    return statSync(resolve(this.root, file), { throwIfNoEntry: false })?.isFile() === true
  }

  /** Imports of a file, including missing ones, which may have been deleted. */
  direct(file: string): readonly string[] {
    let targets = this.#direct.get(file)
    if (targets === undefined) {
      const found = [...this.text(file).matchAll(imports)].map(match => match[1] ?? match[2] ?? match[3]!)
      targets = found
        .filter(specifier => specifier.startsWith('.'))
        .map(specifier => posix.join(posix.dirname(file), specifier))
        .filter(target => /\.(?:[cm]?[jt]s|tsx|css)$/.test(target))
      this.#direct.set(file, targets)
    }
    return targets
  }

  /** All files reachable from `file`, itself included. Where `enter` is false, imports are not followed. */
  reached(file: string, enter: (file: string) => boolean = () => true): ReadonlySet<string> {
    const reached = new Set([file])
    for (const each of reached)
      if (each === file || enter(each)) for (const target of this.direct(each)) reached.add(target)
    return reached
  }
}

/** A path named in a text. */
export interface NamedPath {
  /** Without leading dots and slashes and trailing slashes. */
  readonly path: string
  /** As written, for a path relative to the file. */
  readonly relative: string
  /** Whether it is a whole string: only then a single word can name a file. */
  readonly whole: boolean
  /** Whether it is the first argument of a call, or the first one after `root`. */
  readonly first: boolean
}

/** Possible paths in a text: in strings, in joined strings (`join(root, 'docs', 'ui.md')`) and around `${}`. */
export function namedPaths(text: string): Iterable<NamedPath> {
  const code = text.replace(/^[ \t]*(?:\/\/|\/?\*).*$/gm, '')
  const joined = code.replace(/(['"`])\s*,\s*['"`]/g, '/')
  const found = new Map<string, NamedPath>()
  for (const each of joined === code ? [code] : [code, joined])
    for (const match of each.matchAll(/[\w@.+/-]+/g)) {
      const [token] = match
      const [before, after] = [each[match.index - 1]!, each[match.index + token.length]!]
      const whole = isQuote(before) && isQuote(after)
      if (!whole && !/[./]/.test(token)) continue
      // If the name continues, as in `recipe-${name}.md` or `gen-*.ts`, only the folder is known.
      const relative = after === '$' || after === '*' ? token.replace(/[^/]*$/, '') : token
      const path = posix.normalize(relative).replace(/^(?:\.{0,2}\/)+|\/+$/g, '')
      const first =
        whole && each === joined && /\((?:root, )?$/.test(each.slice(match.index - 8, match.index - 1))
      if (/\w/.test(path)) found.set(`${relative} ${whole} ${first}`, { path, relative, whole, first })
    }
  return found.values()
}

function isQuote(character: string): boolean {
  return character === "'" || character === '"' || character === '`'
}

/** The files of a tree, indexed by the paths in texts. */
export class KnownPaths {
  readonly #files: ReadonlySet<string>
  /** End of the path of a file or its folder → files. */
  readonly #ends = new Map<string, string[]>()
  readonly #folders = new Map<string, string[]>()

  constructor(files: Iterable<string>) {
    this.#files = new Set(files)
    for (const file of this.#files) {
      // `check` and `svc` are usually words, rarely programs of tools/ and bin/. So are `logs` and the like.
      const isWord = /^(?:tools|bin)\/[^.]*$/.test(file)
      for (const end of ends(file)) if (end.includes('/') || !isWord) add(this.#ends, end, file)
      if (/\.test\.tsx?$/.test(file)) continue
      const parent = posix.dirname(file)
      for (let folder = parent; folder !== '.'; folder = posix.dirname(folder)) {
        add(this.#folders, folder, file)
        for (const end of ends(folder))
          if (end.includes('/') || (folder === parent && !/\.tsx?$/.test(file))) add(this.#ends, end, file)
      }
    }
  }

  matching(pattern: RegExp): string[] {
    return [...this.#files].filter(file => pattern.test(file))
  }

  /** The file at a path, relative to another file or to the root. */
  exact(path: string, from: string): string[] {
    return places(path, from).filter(place => this.#files.has(place))
  }

  /** Meanings of a path in `from`: that file, or all whose path or folder ends with it, and a folder's content. */
  named({ path, relative, first }: NamedPath, from: string): string[] {
    const exact = this.exact(relative, from)
    if (exact.length > 0) return exact
    const isPath = first || relative.startsWith('.') || path.includes('/')
    const folders = isPath ? places(relative.replace(/\/$/, ''), from) : []
    return [...(this.#ends.get(path) ?? []), ...folders.flatMap(folder => this.#folders.get(folder) ?? [])]
  }
}

function places(path: string, from: string): string[] {
  return [posix.join(posix.dirname(from), path), posix.normalize(path)]
}

/** A path, and each of its suffixes without the first folders. */
function ends(path: string): string[] {
  const parts = path.split('/')
  return parts.map((_, index) => parts.slice(index).join('/'))
}

function add(map: Map<string, string[]>, key: string, value: string): void {
  const values = map.get(key)
  if (values) values.push(value)
  else map.set(key, [value])
}
