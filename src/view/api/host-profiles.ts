// GET /profiles: records processes of the host.

import {
  type ProfileFormat,
  type ProfileRefusal,
  type ProfileRequest,
  profileFormats,
  profileKindNames,
} from '../../foundation/model/taken-profile.ts'
import { type Answer, answer, failure } from './answer.ts'
import type { ApiOperation, ApiRequest } from './operation.ts'
import * as schemas from './schemas.ts'
import type { AgentView } from './types.ts'

const types = {
  pprof: 'application/octet-stream',
  folded: 'text/plain; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json',
} as const satisfies Record<ProfileFormat, string>

/** A drawing opens as a separate page, without our origin: its content has no access to anything. */
const drawingPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; sandbox allow-scripts allow-modals"

const statusOf = { no_target: 404, busy: 409, off: 503 } as const
/** Services listed in a refusal. */
const mostServices = 100

/** The operation that records processes of the host. */
export function hostProfiles(view: AgentView): ApiOperation {
  return {
    method: 'GET',
    path: '/profiles',
    id: 'takeHostProfile',
    tag: 'telemetry',
    summary: 'Records a profile of a process, a service or the whole host.',
    access: 'private',
    costly: true,
    parameters: [
      { name: 'kind', description: 'Kind of profile.', values: profileKindNames, fallback: 'cpu' },
      { name: 'seconds', description: 'Length of the recording.', minimum: 1, maximum: 60, fallback: 10 },
      {
        name: 'pid',
        description: 'Only this process; 0 for all.',
        minimum: 0,
        maximum: 4_194_304,
        fallback: 0,
      },
      { name: 'service', description: 'Only processes with this `service.name`.', fallback: '' },
      {
        name: 'rate',
        description: 'Samples per second and CPU, for `cpu`; 0 means 99.',
        minimum: 0,
        maximum: 999,
        fallback: 0,
      },
      {
        name: 'format',
        description:
          '`pprof`: gzip, for `go tool pprof`; `folded`: stacks as text; `svg`: a flame graph; `json`: its tree.',
        values: profileFormats,
        fallback: 'pprof',
      },
    ],
    outcomes: {
      200: {
        description: 'The profile; it has no samples if nothing ran.',
        content: {
          [types.pprof]: undefined,
          [types.folded]: undefined,
          [types.svg]: undefined,
          [types.json]: schemas.flameDocument,
        },
      },
      404: refusal('Process or service not found; `details.services` lists the known services.'),
      409: refusal('Another recording is in progress.'),
      503: refusal('Profiling is not available here, or too many expensive requests are in progress.'),
    },
    handle: request => take(view, request),
  }
}

async function take(view: AgentView, { parameters, texts, signal }: ApiRequest): Promise<Answer> {
  const { pid = 0, rate = 0, seconds = 1 } = parameters
  const { service = '' } = texts
  const format = texts.format as ProfileFormat
  const asked: ProfileRequest = {
    kind: texts.kind as ProfileRequest['kind'],
    seconds,
    ...(pid > 0 && { pid }),
    ...(service !== '' && { service }),
    ...(rate > 0 && { rate }),
    signal,
  }
  if (pid > 0 && service !== '') return failure(400, 'cannot answer /profiles: use pid or service, not both')
  const taken = await view.takeProfile(asked)
  if ('refused' in taken) return refused(taken)
  const { contentType, fileName, body } = await view.profileFile(taken, asked, format)
  return answer(200, contentType, body, {
    ...(format === 'pprof' && { 'Content-Disposition': `attachment; filename="${fileName}"` }),
    ...(format === 'svg' && { 'Content-Security-Policy': drawingPolicy }),
  })
}

function refused({ refused: why, hint, cause, services }: ProfileRefusal): Answer {
  return failure(statusOf[cause], why, {
    hint,
    ...(services !== undefined && { services: services.slice(0, mostServices) }),
  })
}

function refusal(description: string) {
  return { description, content: { 'application/json': schemas.errorDocument } }
}
