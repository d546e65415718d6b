// Other suites and architectures from this host's mirror, without changes to the host.

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Differences from the host's own packages. */
export interface Suite {
  /** For example `trixie`. If absent, that of this host. */
  readonly suite?: string | undefined
  /** Debian's name, for example `arm64`. If absent, that of this host. */
  readonly architecture?: string | undefined
}

/**
 * Options that make apt-get use only this suite and architecture, with its own lists below `to`; none if neither is
 * given, undefined if there is no mirror or it does not answer.
 */
export function suiteOptions(to: string, { suite, architecture }: Suite): string[] | undefined {
  if (suite === undefined && architecture === undefined) return []
  const mirror = ownMirror()
  if (mirror === undefined) return undefined
  const at = (...names: string[]) => join(to, ...names)
  mkdirSync(at('lists', 'partial'), { recursive: true })
  mkdirSync(at('cache'), { recursive: true })
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg'
  writeFileSync(at('sources.list'), `deb [signed-by=${keys}] ${mirror.uri} ${suite ?? mirror.suite} main\n`)
  const settings = {
    'Dir::Etc::SourceList': at('sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Lists': at('lists'),
    'Dir::Cache': at('cache'),
    'APT::Sandbox::User': 'root',
    'Debug::NoLocking': 'true',
    ...(architecture !== undefined && {
      'APT::Architecture': architecture,
      'APT::Architectures': architecture,
    }),
  }
  const options = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])
  return spawnSync('apt-get', [...options, 'update', '-qq']).status === 0 ? options : undefined
}

/** The mirror and suite of this host. */
export function ownMirror(): { readonly suite: string; readonly uri: string } | undefined {
  const { stdout } = spawnSync('apt-get', ['indextargets', '--format', '$(LABEL) $(CODENAME) $(REPO_URI)'], {
    encoding: 'utf8',
  })
  const lines = (stdout ?? '').split('\n').map(line => line.split(' '))
  const own = lines.find(
    ([label, suite]) => label === 'Debian' && suite !== undefined && !suite.includes('-'),
  )
  return own?.[2] === undefined ? undefined : { suite: own[1]!, uri: own[2] }
}
