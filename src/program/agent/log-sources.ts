// Which files are logs, their format, and their owner.

import type { Config } from '../../config/index.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { realPath } from '../../foundation/lib/optional-files.ts'
import { SearchPattern } from '../../foundation/lib/search-pattern.ts'
import type { ContainerPlace } from '../../identity/entities/container-place.ts'
import type { Entities } from '../../identity/entities/entities.ts'
import type { EmitRecord, FollowedFile, LogSource } from '../../signals/logs/line-reader.ts'
import { type LogForm, logReader } from '../../signals/logs/log-reader.ts'
import { matchesPath, type PathPattern, pathPatterns } from '../../signals/logs/path-pattern.ts'
import type { WaitingText } from '../../signals/logs/waiting-text.ts'
import { dockerLogId, type PlaceOf, podLogs } from './pod-logs.ts'

export interface LogSourcesOptions {
  readonly settings: Config['agent']['logs']
  readonly entities: Entities
  readonly waiting: WaitingText
  /** Accepts records of a container; `undefined`: of a file of the host. */
  readonly emit: (source: string, placeOf: PlaceOf | undefined) => EmitRecord
  /** Undefined: those of this host. */
  readonly directories?: LogDirectories
}

export interface LogDirectories {
  readonly docker: string
  readonly pods: string
  /** Directory of the kubelet's links to pod logs, whose names contain container IDs. */
  readonly links: string
}

const usual: LogDirectories = {
  docker: '/var/lib/docker/containers',
  pods: '/var/log/pods',
  links: '/var/log/containers',
}

/** Default log directories of Docker and the kubelet. */
export const containerLogDirectories: readonly string[] = [usual.docker, usual.pods]

/** Format and owner of a log file. `undefined`: not a log of its source. */
type Known = { readonly form: LogForm; readonly placeOf: PlaceOf | undefined } | undefined

/** The configured logs. Throws a readable error if an exclude pattern is invalid. */
export function logSources(options: LogSourcesOptions): LogSource[] {
  const { settings, entities, directories = usual } = options
  const excluded = settings.exclude.flatMap(excludedPatterns)
  const { pattern } = settings.multiline
  const marks = pattern === '' ? undefined : new SearchPattern(pattern)
  const source = (
    name: string,
    patterns: () => readonly string[],
    knownAs: (path: string) => Known,
  ): LogSource => ({
    name,
    patterns,
    excluded: path => excluded.some(pattern => matchesPath(pattern, path)),
    reader: file => {
      const known = knownAs(file.path)
      return known && reader(options, known.form, file, marks, options.emit(name, known.placeOf))
    },
  })
  const files = source(
    'files',
    () => settings.paths,
    () => ({ form: 'plain', placeOf: undefined }),
  )
  const ofPod = podLogs(entities, directories)
  const all = [
    source(
      'docker',
      () => runtimePatterns(entities, 'docker', [`${directories.docker}/*/*-json.log`]),
      path => dockerLog(path, entities),
    ),
    source(
      'podman',
      () => runtimePatterns(entities, 'podman', []),
      path => podmanLog(path, entities),
    ),
    source('cri', () => [`${directories.pods}/*/*/*.log`], ofPod),
  ]
  return [...(settings.container_logs ? all : []), ...(settings.paths.length > 0 ? [files] : [])]
}

function excludedPatterns(pattern: string): PathPattern[] {
  try {
    return pathPatterns(pattern)
  } catch (error) {
    // Better to read nothing than a log that should be excluded.
    throw new Error(`invalid pattern "${pattern}" in agent.logs.exclude: ${errorText(error)}`)
  }
}

function reader(
  { settings, waiting }: LogSourcesOptions,
  form: LogForm,
  file: FollowedFile,
  marks: SearchPattern | undefined,
  emit: EmitRecord,
) {
  const { parse, multiline, max_line_size } = settings
  return logReader(form, {
    path: file.path,
    owner: file.owner,
    waiting,
    parse: { json: parse.json, severity: parse.severity, traceContext: parse.trace_context },
    multiline:
      multiline.enabled && marks !== undefined
        ? {
            pattern: marks,
            negate: multiline.negate,
            match: multiline.match,
            maxLines: multiline.max_lines,
            timeoutMs: multiline.timeout,
          }
        : undefined,
    maxBytes: max_line_size,
    emit,
  })
}

/** The runtime's reported log directories, in addition to the defaults. */
function runtimePatterns(entities: Entities, runtime: string, where: readonly string[]): readonly string[] {
  const patterns = [...where]
  for (const container of entities.eachContainer())
    if (container.runtime === runtime && /^\/[^*?[{\\]+$/.test(container.logPath))
      patterns.push(container.logPath)
  return patterns
}

/** `<id>/<id>-json.log`. */
function dockerLog(path: string, entities: Entities): Known {
  const id = dockerLogId(path)
  const real = realPath(path)
  // A link elsewhere was made by someone else. A missing one may have been rotated away.
  if (id === '' || (real !== '' && dockerLogId(real) !== id)) return undefined
  const place = { id, runtime: 'docker', podUid: entities.containerOf(id)?.podUid ?? '' }
  return { form: 'docker', placeOf: () => place }
}

function podmanLog(path: string, entities: Entities): Known {
  for (const { id, logPath, podUid } of entities.eachContainer()) {
    if (logPath !== path) continue
    const place: ContainerPlace = { id, runtime: 'podman', podUid }
    return { form: 'cri', placeOf: () => place }
  }
  return undefined
}
