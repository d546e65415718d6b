// What starts svc in an image, where there is no shell for bin/svc. The flags and the environment are read from bin/svc,
// which alone has them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compilerOf } from './arm64-compiler.ts'
import { output } from './command.ts'
import { type Architecture, root } from './release.ts'

/** How bin/svc starts the runtime. */
export interface Start {
  /** `NAME=value`. */
  readonly environment: readonly string[]
  /** Of the runtime, before the script. */
  readonly flags: readonly string[]
}

/** Reads it from the text of bin/svc. */
export function startOf(script: string): Start {
  const exports = [...script.matchAll(/^export (.+)$/gm)].flatMap(([, list]) => list!.split(' '))
  const [, all] = /^exec "\$node" (.+) "\$@"$/m.exec(script) ?? []
  // Of the runtime that the package brings, which is that of the image.
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

/** Compiles it to `file`. It takes gcc, for another architecture the cross compiler of Debian. */
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
