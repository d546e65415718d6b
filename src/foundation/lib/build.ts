import { readFileSync, statSync } from 'node:fs'

/** Identity of this build. `built` is ISO 8601 in UTC. */
export interface Build {
  readonly version: string
  /** Short commit id, `unknown` if the sources have none. */
  readonly commit: string
  readonly built: string
}

/** Replaced by the bundler. */
declare const SVC_BUILD: Build | undefined

let known: Build | undefined

/** The build's identity; when run from sources, that of package.json. */
export function build(): Build {
  known ??= typeof SVC_BUILD === 'undefined' ? fromSources() : SVC_BUILD
  return known
}

function fromSources(): Build {
  const file = `${import.meta.dirname}/../../../package.json`
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  return {
    version,
    commit: 'unknown',
    built: statSync(file)
      .mtime.toISOString()
      .replace(/\.\d+Z$/, 'Z'),
  }
}
