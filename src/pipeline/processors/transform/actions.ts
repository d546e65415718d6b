import { isZero } from '../../../foundation/lib/is-zero.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { LogRecord } from '../../../foundation/model/log.ts'
import type { Signal } from '../../../foundation/model/signal.ts'
import type { Span } from '../../../foundation/model/span.ts'
import {
  type AttributeAction,
  copying,
  deleting,
  Effect,
  hashing,
  keeping,
  renaming,
  replacingIn,
  setting,
  truncating,
} from './attribute-actions.ts'
import { extracting } from './extraction.ts'
import type { ActionSettings } from './keys.ts'
import type { Item } from './match.ts'
import { replacing } from './replacement.ts'
import { severityName } from './severity.ts'

/** One action of a rule on a matching item, or on a resource, which has no item. */
export type Action = (attributes: Attributes, item: Item | undefined) => Effect

/** Environment of actions. */
export interface ActionEnv {
  readonly installKey: () => Uint8Array
  readonly nowMs: () => number
}

/** Compiles an action. Throws an error with a reason if its settings contradict each other. */
export function compileAction(settings: ActionSettings, env: ActionEnv): Action {
  return makers[settings.type](settings, env)
}

/** Signals that an action is limited to; undefined for no limit. */
export function signalsFor(settings: ActionSettings): readonly Signal[] | undefined {
  const { type, extract_attributes } = settings
  if (type === 'sample') return ['traces', 'logs']
  if (type === 'set_severity' || type === 'replace_body') return ['logs']
  return type === 'extract_attributes' && extract_attributes.key === '' ? ['logs'] : undefined
}

/** Reason why settings are not a valid action; '' if they are. */
export function actionFault(settings: ActionSettings): string {
  const { type, replace, replace_body, extract_attributes, set_severity } = settings
  try {
    if (type === 'replace') replacing(replace.pattern, replace.replacement, () => 0)
    if (type === 'replace_body') replacing(replace_body.pattern, replace_body.replacement, () => 0)
    if (type === 'extract_attributes') extracting(extract_attributes.pattern, '')
  } catch (error) {
    return `invalid pattern in "${type}": ${(error as Error).message}`
  }
  return type === 'set_severity' && set_severity.severity === 0
    ? '"set_severity.severity" is empty; use one such as "warn"'
    : ''
}

type Maker = (settings: ActionSettings, env: ActionEnv) => Action

const makers: Readonly<Record<ActionSettings['type'], Maker>> = {
  set_attribute: ({ set_attribute: { key, value, mode } }) => setting(key, value, mode),
  delete_attribute: ({ delete_attribute: { key } }) => deleting(key),
  rename_attribute: ({ rename_attribute: { from, to } }) => renaming(from, to),
  copy_attribute: ({ copy_attribute: { from, to } }) => copying(from, to),
  keep_attributes: ({ keep_attributes: { keys } }) => keeping(keys),
  hash_attribute: ({ hash_attribute: { key, algorithm, salt } }, { installKey }) =>
    hashing(key, algorithm, salt === '' ? installKey() : salt),
  truncate_attribute: ({ truncate_attribute: { key, length } }) => truncating(key, length),
  replace: ({ replace: { key, pattern, replacement } }, { nowMs }) =>
    replacingIn(key, replacing(pattern, replacement, nowMs)),
  replace_body: ({ replace_body: { pattern, replacement } }, { nowMs }) =>
    replacingBody(pattern, replacement, nowMs),
  extract_attributes: ({ extract_attributes: { key, pattern, prefix } }) =>
    key === '' ? extractingFromBody(pattern, prefix) : extractingFrom(key, pattern, prefix),
  set_severity: ({ set_severity: { severity } }) => settingSeverity(severity),
  sample: ({ sample: { ratio } }) => sampling(ratio),
  drop: () => () => Effect.dropped,
}

function replacingBody(pattern: string, replacement: string, nowMs: () => number): Action {
  const replace = replacing(pattern, replacement, nowMs)
  return (_, item) => {
    const record = item as LogRecord
    const body = replace(record.body)
    if (body === undefined) return Effect.skipped
    record.body = body
    return Effect.done
  }
}

function extractingFrom(key: string, pattern: string, prefix: string): AttributeAction {
  const extract = extracting(pattern, prefix)
  return attributes => {
    const value = attributes.get(key)
    if (value === undefined) return Effect.done
    if (typeof value !== 'string') return Effect.skipped
    extract(value, attributes)
    return Effect.done
  }
}

function extractingFromBody(pattern: string, prefix: string): Action {
  const extract = extracting(pattern, prefix)
  return (attributes, item) => {
    extract((item as LogRecord).body, attributes)
    return Effect.done
  }
}

function settingSeverity(severity: number): Action {
  const text = severityName(severity)
  return (_, item) => {
    const record = item as LogRecord
    record.severity = severity
    record.severityText = text
    return Effect.done
  }
}

/**
 * Keeps a part of the traces as a whole, and their log records: those above a threshold in the random bytes of the
 * trace ID (W3C Trace Context level 2), as in the tracer's own sampling, so that the smaller of two ratios applies.
 * Records without a trace are sampled randomly.
 */
function sampling(ratio: number): Action {
  const threshold = (1 - ratio) * 2 ** 48
  return (_, item) => {
    const { traceId } = item as Span | LogRecord
    let value = 0
    for (let i = 9; i < 15; i++) value = value * 256 + traceId[i]!
    if (value === 0 && isZero(traceId)) value = Math.random() * 2 ** 48
    return value >= threshold ? Effect.done : Effect.sampled
  }
}
