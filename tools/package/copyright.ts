// /usr/share/doc/svc/copyright: authors and licences of a package.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ForeignPart } from './foreign-parts.ts'
import { root } from './release.ts'

/** The list first, then the text of every licence. */
export function copyright(parts: readonly ForeignPart[]): string {
  const own = [
    { what: 'svc', licence: 'Apache-2.0', text: readFileSync(join(root, 'LICENSE'), 'utf8').trim() },
    {
      what: 'dist/*.bpf.o',
      licence: 'GPL-2.0-only OR BSD-2-Clause',
      text: readFileSync(join(root, 'bpf/LICENSE'), 'utf8').trim(),
    },
  ]
  const foreign = parts.map(({ name, version, licence, within, text }) => ({
    what: `${name} ${version} (${within})`,
    licence,
    text,
  }))
  const all = [...own, ...foreign]
  const list = all.map(({ what, licence }) => `  ${what}: ${licence}`)
  const texts = all.map(({ what, text }) => `${'-'.repeat(79)}\n${what}\n\n${text}\n`)
  return `svc, and what of others it brings along. sbom.cdx.json has the same for programs.\n\n${list.join('\n')}\n\n${texts.join('\n')}`
}
