// The checks of `svc doctor`, run by the agent without blocking it.

import type { Config } from '../../config/index.ts'
import type { Install } from '../../kernel/install.ts'
import type { Finding, Hints } from '../../kernel/need.ts'
import type { DoctorDocument } from '../../view/api/ui/documents.ts'
import { type KernelPart, untried } from '../agent/kernel-parts.ts'
import { kernelState } from '../agent/kernel-state.ts'
import type { Examined } from '../doctor/check.ts'
import type { Findings } from '../doctor/examine.ts'
import type { PartPrograms } from '../doctor/kernel-counts.ts'
import type { DocumentContext } from './document-context.ts'
import { status } from './view.ts'

interface Answer {
  readonly document: Promise<DoctorDocument>
  /** Time of the result, of `performance.now()`; infinite while the checks run. */
  atMs: number
}

/** Checks contact other hosts; viewers share one result. */
const freshMs = 10_000

const answers = new WeakMap<DocumentContext['pipelines'], Answer>()

/** Runs the checks at most once at a time; a result is reused for ten seconds. */
export function doctor(parts: DocumentContext): Promise<DoctorDocument> {
  const known = answers.get(parts.pipelines)
  if (known !== undefined && performance.now() - known.atMs < freshMs) return known.document
  const answer: Answer = { document: examined(parts), atMs: Number.POSITIVE_INFINITY }
  answers.set(parts.pipelines, answer)
  const settled = () => {
    answer.atMs = performance.now()
  }
  answer.document.then(settled, () => answers.delete(parts.pipelines))
  return answer.document
}

async function examined(parts: DocumentContext): Promise<DoctorDocument> {
  // Loaded on demand.
  const { examineGently } = await import('../doctor/examine.ts')
  const { partPrograms } = await import('../doctor/kernel-counts.ts')
  const { hintOrder } = await import('../doctor/report.ts')
  const { installOf } = await import('../../kernel/install.ts')
  const install = installOf()
  const groups = await examineGently(parts.loaded(), knownFindings(parts, partPrograms), status(parts))
  return {
    checks: groups.flatMap(({ title, checks }) =>
      checks.map(check => ({
        group: title,
        name: check.name,
        state: check.state,
        fault: check.fault ?? '',
        detail: parts.shown(check.detail),
        impact: check.impact ?? '',
        hint: hintsOf(check, install, hintOrder),
      })),
    ),
  }
}

function hintsOf(
  { hints = {} }: Examined,
  install: Install,
  order: (hints: Hints, install: Install) => (keyof Hints)[],
): string[] {
  return order(hints, install).map(kind => (kind === 'any' ? hints.any! : `${kind}: ${hints[kind]!}`))
}

/**
 * Findings that follow from the running agent, or that would load its programs again, which takes the kernel a
 * second.
 */
function knownFindings(parts: DocumentContext, counts: readonly PartPrograms[]): Findings {
  const state = kernelState(parts.states())
  const { agent } = parts.loaded().config
  const programs = counts.map(({ name, part }) => [name, kernelPrograms(part, agent, state)] as const)
  return new Map([...parts.known(), ...programs])
}

function kernelPrograms(
  { subsystem, topic, off }: KernelPart,
  agent: Config['agent'],
  states: ReturnType<typeof kernelState>,
): Finding[] {
  if (off(agent) !== undefined) return []
  const { state, reason } = states.find(part => part.subsystem === subsystem)!
  return [state === 'on' ? { ok: 'loaded and attached' } : untried(reason, topic)]
}
