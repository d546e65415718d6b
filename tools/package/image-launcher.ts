// The launcher of svc in an image, which has no shell for bin/svc. Flags and environment are read from bin/svc, their
// only definition.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compilerOf } from './arm64-compiler.ts'
import { output } from './command.ts'
import { type Architecture, root } from './release.ts'

/** How bin/svc starts the runtime. */
export interface Start {
  /** `NAME=value`. */
  readonly environment: readonly string[]
  /** Flags of the runtime, before the script. */
  readonly flags: readonly string[]
}

/** Parses the text of bin/svc. */
export function startOf(script: string): Start {
  const exports = [...script.matchAll(/^export (.+)$/gm)].flatMap(([, list]) => list!.split(' '))
  const [, all] = /^exec "\$node" (.+) "\$@"$/m.exec(script) ?? []
  // Flags of the shipped runtime, which the image uses.
  const [, own] = /\bset -- (--\S+) "\$@" ;;/.exec(script) ?? []
  if (all === undefined || own === undefined || exports.length === 0)
    throw new Error(
      'cannot read the flags of bin/svc: it has no line that begins with `export` or `exec "$node"`, or no `set -- --`',
    )
  const flags = [...all.split(' '), own]
  const odd = [...exports, ...flags].find(word => !/^[\w=-]+$/.test(word))
  if (odd !== undefined) throw new Error(`cannot take "${odd}" from bin/svc: it is not a plain word`)
  return { environment: exports, flags }
}

/** Compiles it to `file`. Needs gcc, for another architecture Debian's cross compiler. */
export function writeLauncher(file: string, architecture: Architecture): void {
  const { environment, flags } = startOf(readFileSync(join(root, 'bin/svc'), 'utf8'))
  const list = (words: readonly string[]) => words.map(word => JSON.stringify(word)).join(', ')
  const source = join(root, 'deploy/docker/launcher.c')
  const { command, args } = compilerOf(architecture)
  output(command, [
    ...args,
    ...['hardened.opt', `hardened-${architecture}.opt`].map(name => `@${join(root, 'native', name)}`),
    ...['-std=gnu11', '-Os', '-s', '-Wall', '-Wextra', '-Werror', '-Wl,--build-id=none'],
    ...[`-DSVC_ENVIRONMENT=${list(environment)}`, `-DSVC_FLAGS=${list(flags)}`, '-o', file, source],
  ])
}
