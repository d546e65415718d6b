// Redaction of foreign texts for display.

import type { Config } from '../../config/index.ts'
import { Redactor } from '../../pipeline/processors/redact/redactor.ts'
import { rulesOf } from '../../pipeline/processors/redact/rules.ts'
import { secretKey } from '../../pipeline/processors/redact/secret-names.ts'

/** A text for display. `key` is the attribute of this value. */
export type ShownText = (text: string, key?: string) => string

/**
 * Redacts by the rules of `pipeline.pii_redaction`, or the built-in ones, even if that is off. Matches are replaced in
 * any mode, because a hash or count does not help a reader.
 */
export function shownText({ self_telemetry, pipeline }: Config): ShownText {
  if (!self_telemetry.ui.redact) return text => text
  const { pii_redaction } = pipeline
  const replacement = pii_redaction.replacement
  const rules = rulesOf(pii_redaction).map(
    rule => ({ ...rule, mode: 'replace', replacement: rule.replacement || replacement }) as const,
  )
  const [first] = rules
  if (first === undefined) return text => text
  const redactor = new Redactor(rules, {
    maxBytes: pii_redaction.max_scan_bytes,
    key: new Uint8Array(),
    nowMs: () => performance.now(),
  })
  const allowed = new Set(pii_redaction.allowed_attributes)
  return (text, key) => {
    if (key !== undefined && allowed.has(key)) return text
    const type = key === undefined ? undefined : secretKey(key)
    return type === undefined ? redactor.text(text, 0) : redactor.whole(text, first)
  }
}
