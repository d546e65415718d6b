// How the last reload of the configuration ended, for whoever looks.

import { basename } from 'node:path'
import type { Degradation, StatusDocument } from '../../view/api/types.ts'
import type { ReloadState } from './reload.ts'

/** Name of the subsystem that a refused reload limits. */
export const refused = 'reload'

/** Of `/status`. */
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

/** That it was refused; none where it was not. */
export function refusedReload(state: ReloadState): Degradation[] {
  const { lastSuccessful, lastError, hint } = state
  if (lastSuccessful) return []
  return [{ subsystem: refused, reason: `rejected at ${timeOf(state)}: ${lastError}`, hint }]
}

/**
 * What somebody who asks whether the agent is ready should know, though it is. Anybody may ask: a mistake is told by its
 * place, and not by its words.
 */
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
