// Network devices of a test's own: a namespace that ip(8) makes, and collectors that run in it.

import { execFileSync, spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import type { TestContext } from 'node:test'
import { hostPages } from '../../tools/testing/reached.ts'
import type { ReadResult } from './collector.ts'

/** Why there can be no namespace here; false where there can. */
export const withoutNamespaces =
  process.getuid?.() === 0 && spawnSync('ip', ['netns']).status === 0 ? false : 'needs root and ip(8)'

const root = resolve(import.meta.dirname, '../..')
let made = 0

export class NetworkNamespace {
  readonly #name: string

  /** With what these commands of ip(8) make in it. It goes with the test. */
  constructor(t: TestContext, commands: readonly string[]) {
    this.#name = `svc-test-${process.pid}-${made++}`
    execFileSync('ip', ['netns', 'add', this.#name])
    t.after(() => execFileSync('ip', ['netns', 'del', this.#name]))
    for (const command of commands) execFileSync('ip', ['-n', this.#name, ...command.split(' ')])
  }

  /** What a collector reads there, after a script has run in the same process. */
  read(name: string, options: Record<string, unknown> = {}, before = ''): ReadResult {
    const result = this.run(`${before}
      const { ${name} } = await import(${JSON.stringify(join(root, 'src/signals/metrics/collectors', `${name}.ts`))})
      const { readWith } = await import(${JSON.stringify(join(root, 'test/helpers/collector.ts'))})
      console.log(JSON.stringify(await readWith(${name}, ${JSON.stringify(options)}, '/')))`) as ReadResult
    hostPages.publish(result.lines.join('\n'))
    return result
  }

  /** Runs a module there; returns what it printed as JSON. */
  run(script: string): unknown {
    const node = [process.execPath, '--no-warnings', '--input-type=module', '-e', script]
    const printed = execFileSync('ip', ['netns', 'exec', this.#name, ...node], { encoding: 'utf8' })
    return JSON.parse(printed)
  }
}
