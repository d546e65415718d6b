// The result of the last reload, for documents.

import { basename } from 'node:path'
import type { Degradation, StatusDocument } from '../../view/api/types.ts'
import type { ReloadState } from './reload.ts'

/** Name of the subsystem that a rejected reload degrades. */
export const refused = 'reload'

/** For `/status`. */
export function reloadDocument(state: ReloadState): StatusDocument['reload'] {
  return {
    successful: state.lastSuccessful,
    last_attempt: timeOf(state),
    reason: state.lastError,
    place: state.place,
    hint: state.hint,
    requires_restart: [...state.requiresRestart],
  }
}

/** The degradation of a rejected reload; empty otherwise. */
export function refusedReload(state: ReloadState): Degradation[] {
  const { lastSuccessful, lastError, hint } = state
  if (lastSuccessful) return []
  return [{ subsystem: refused, reason: `rejected at ${timeOf(state)}: ${lastError}`, hint }]
}

/** Warnings of `/ready` on reloads. That path is public: a mistake is reported by its place, without its text. */
export function reloadWarnings(state: ReloadState): string[] {
  const { lastSuccessful, place } = state
  if (lastSuccessful) return []
  const where = place === '' ? '' : `: ${basename(place)}`
  return [
    `${refused}: rejected at ${timeOf(state)}; previous configuration still active${where}; see svc status`,
  ]
}

function timeOf({ lastAttemptMs }: ReloadState): string {
  return new Date(lastAttemptMs).toISOString()
}
