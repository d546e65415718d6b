import { hideAll } from './collections.ts'
import type { Origin } from './load.ts'
import { type Config, schema } from './schema.ts'
import { type Hide, show } from './tree.ts'

/**
 * The whole configuration in the shape of a file, durations and sizes as text. Secret keys, and every value that holds
 * the content of a secret file, read `[REDACTED]`.
 */
export function redacted(config: Config, origins: ReadonlyMap<string, Origin>): unknown {
  return show(schema, config, (leaf, path): Hide => {
    if (leaf.secret) return hideAll
    const secrets = origins.get(path)?.secrets ?? []
    if (secrets.length === 0) return shown => shown
    return shown => (secrets.some(secret => String(shown).includes(secret)) ? '[REDACTED]' : shown)
  })
}
