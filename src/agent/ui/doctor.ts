// What `svc doctor` finds, tried by the agent itself without holding it up.

import type { DoctorDocument } from '../../api/ui/documents.ts'
import type { Examined } from '../../cli/doctor/check.ts'
import type { Findings } from '../../cli/doctor/examine.ts'
import type { PartPrograms } from '../../cli/doctor/kernel-counts.ts'
import type { Install } from '../../kernel/install.ts'
import { refusedPrograms } from '../../kernel/loaded.ts'
import type { Finding, Hints } from '../../kernel/need.ts'
import type { KernelPart } from '../kernel-parts.ts'
import { kernelState } from '../kernel-state.ts'
import { Tracing } from '../tracing.ts'
import { status } from '../view.ts'
import type { UiParts } from './parts.ts'

interface Answer {
  readonly document: Promise<DoctorDocument>
  /** When it was found, of `performance.now()`; infinite while it is being looked for. */
  atMs: number
}

/** Checks ask other machines, and need not be asked for each of those who look. */
const freshMs = 10_000

const answers = new WeakMap<UiParts['outlets'], Answer>()

/** At most one examination at a time, whose answer serves for ten seconds. */
export function doctor(parts: UiParts): Promise<DoctorDocument> {
  const known = answers.get(parts.outlets)
  if (known !== undefined && performance.now() - known.atMs < freshMs) return known.document
  const answer: Answer = { document: examined(parts), atMs: Number.POSITIVE_INFINITY }
  answers.set(parts.outlets, answer)
  const settled = () => {
    answer.atMs = performance.now()
  }
  answer.document.then(settled, () => answers.delete(parts.outlets))
  return answer.document
}

async function examined(parts: UiParts): Promise<DoctorDocument> {
  // Nobody who does not look pays for what they are made of.
  const { examineGently } = await import('../../cli/doctor/examine.ts')
  const { partPrograms } = await import('../../cli/doctor/kernel-counts.ts')
  const { hintOrder } = await import('../../cli/doctor/report.ts')
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
        lose: check.lose ?? '',
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
 * What the agent knows by running, or would find out only by loading its programs once more, which takes the kernel a
 * second.
 */
function knownFindings(parts: UiParts, counts: readonly PartPrograms[]): Findings {
  const known = new Map<string, readonly Finding[]>([
    ['capture programs', [capturePrograms(parts)]],
    ['profile programs', [profilePrograms(parts)]],
    ...counts.map(({ name, part }) => [name, kernelPrograms(parts, part)] as const),
  ])
  const api = parts.api()
  if (api !== undefined) known.set('address', [{ ok: `${api.url('/')} is in use by this svc` }])
  const metrics = parts.hostMetrics()
  if (metrics === undefined) return known
  known.set('collectors', [{ ok: `${metrics.collectors} are at work` }])
  if (metrics.server !== undefined)
    known.set('metrics address', [{ ok: `${metrics.server.url('/metrics')} is in use by this svc` }])
  return known
}

function capturePrograms({ tracing }: UiParts): Finding {
  if (tracing instanceof Tracing)
    return { ok: `those of the back end "${tracing.capture.backend.name}" are loaded and attached` }
  const why = tracing === undefined ? 'tracing is off' : tracing.reason
  return {
    fault: 'untried',
    detail: `${why}; run svc doctor traces to load them; the agent does not, because that would block it`,
  }
}

function kernelPrograms(parts: UiParts, { subsystem, off }: KernelPart): Finding[] {
  if (off(parts.loaded().config.agent) !== undefined) return []
  const { state, reason } = kernelState(parts).find(part => part.subsystem === subsystem)!
  if (state === 'on') return [{ ok: 'are loaded and attached' }]
  return [
    {
      fault: 'untried',
      detail: `${reason}; run svc doctor kernel to load them; the agent does not, because that would block it`,
    },
  ]
}

function profilePrograms({ profiling }: UiParts): Finding {
  const { sampler } = profiling
  if (sampler === undefined)
    return {
      fault: 'untried',
      detail:
        'profiling is not running; run svc doctor profiles to load them; the agent does not, because that would block it',
    }
  if (sampler.degraded !== undefined)
    return { fault: 'degraded', detail: `stacks are unwound by frame pointers only: ${sampler.degraded}` }
  const [refused] = refusedPrograms('profile')
  return refused === undefined
    ? { ok: 'those that unwind with tables are loaded' }
    : { fault: 'no_waits', detail: `${refused.name} was rejected: ${refused.refused}` }
}
