// Which files of the tree a file of TypeScript imports, read from its text.
import { existsSync, readFileSync } from 'node:fs'
import { posix, resolve } from 'node:path'

/** Specifiers of imports and exports, of `import()`, `require()` and `new URL()`, and of modules named by themselves. */
export const imports =
  /^(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"\n]+)['"]|\b(?:import|require|URL)\(\s*['"]([^'"\n]+)['"]|['"](node:[\w/]+)['"]/gm

/** The files below `root` that each file imports, and all that it reaches. Paths are relative to `root`. */
export class ImportGraph {
  readonly #root: string
  readonly #texts = new Map<string, string>()
  readonly #direct = new Map<string, readonly string[]>()

  constructor(root: string) {
    this.#root = root
  }

  text(file: string): string {
    let text = this.#texts.get(file)
    if (text === undefined) {
      text = readFileSync(resolve(this.#root, file), 'latin1')
      this.#texts.set(file, text)
    }
    return text
  }

  direct(file: string): readonly string[] {
    let targets = this.#direct.get(file)
    if (targets === undefined) {
      const found = [...this.text(file).matchAll(imports)].map(match => match[1] ?? match[2] ?? match[3]!)
      targets = found
        .filter(specifier => specifier.startsWith('.'))
        .map(specifier => posix.join(posix.dirname(file), specifier))
        .filter(target => /\.tsx?$/.test(target) && existsSync(resolve(this.#root, target)))
      this.#direct.set(file, targets)
    }
    return targets
  }

  /** All that `file` leads to, itself included. `enter` false: what a file imports is not followed. */
  reached(file: string, enter: (file: string) => boolean = () => true): ReadonlySet<string> {
    const reached = new Set([file])
    for (const each of reached)
      if (each === file || enter(each)) for (const target of this.direct(each)) reached.add(target)
    return reached
  }
}
