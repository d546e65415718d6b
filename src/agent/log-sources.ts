// Which files are logs, of what form, and of whom they tell.

import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/index.ts'
import type { ContainerPlace } from '../entities/container-place.ts'
import type { Entities } from '../entities/entities.ts'
import { SearchPattern } from '../lib/search-pattern.ts'
import type { EmitRecord, FollowedFile, LogSource } from '../logs/line-reader.ts'
import { type LogForm, logReader } from '../logs/log-reader.ts'
import { matchesPath, pathPatterns } from '../logs/path-pattern.ts'

/** Where Docker and the kubelet keep logs unless they are told otherwise. */
export const containerLogDirectories = ['/var/lib/docker/containers', '/var/log/pods']

export interface LogSourcesOptions {
  readonly settings: Config['agent']['logs']
  readonly entities: Entities
  /** Takes the records of a container, `undefined`: of a file of the host. */
  readonly emit: (source: string, place: ContainerPlace | undefined) => EmitRecord
}

/** The logs that the configuration asks for. */
export function logSources(options: LogSourcesOptions): LogSource[] {
  const { settings, entities } = options
  const excluded = settings.exclude.flatMap(pathPatterns)
  const { pattern } = settings.multiline
  const marks = pattern === '' ? undefined : new SearchPattern(pattern)
  const source = (
    name: string,
    form: LogForm,
    patterns: () => readonly string[],
    placeOf: (path: string) => ContainerPlace | undefined | 'none',
  ): LogSource => ({
    name,
    patterns,
    excluded: path => excluded.some(pattern => matchesPath(pattern, path)),
    reader: file => {
      const place = placeOf(file.path)
      return place === 'none' ? undefined : reader(options, form, file, marks, options.emit(name, place))
    },
  })
  const files = source(
    'files',
    'plain',
    () => settings.paths,
    () => undefined,
  )
  if (!settings.container_logs) return settings.paths.length > 0 ? [files] : []
  return [
    source(
      'docker',
      'docker',
      () => dockerPatterns(entities, 'docker'),
      path => dockerPlace(path, entities),
    ),
    source(
      'podman',
      'cri',
      () => dockerPatterns(entities, 'podman'),
      path => podmanPlace(path, entities),
    ),
    source(
      'cri',
      'cri',
      () => ['/var/log/pods/*/*/*.log'],
      path => podPlace(path, entities),
    ),
    ...(settings.paths.length > 0 ? [files] : []),
  ]
}

function reader(
  { settings }: LogSourcesOptions,
  form: LogForm,
  file: FollowedFile,
  marks: SearchPattern | undefined,
  emit: EmitRecord,
) {
  const { parse, multiline, max_line_size } = settings
  return logReader(form, {
    path: file.path,
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

/** Where the runtime says that it writes, beside where it does so usually. */
function dockerPatterns(entities: Entities, runtime: 'docker' | 'podman'): string[] {
  const patterns = runtime === 'docker' ? ['/var/lib/docker/containers/*/*-json.log'] : []
  for (const container of entities.eachContainer())
    if (container.runtime === runtime && /^\/[^*?[{]+$/.test(container.logPath))
      patterns.push(container.logPath)
  return patterns
}

/** `<id>/<id>-json.log`; of a pod the kubelet's link to it is followed, which tells more. */
function dockerPlace(path: string, entities: Entities): ContainerPlace | 'none' {
  const id = /([0-9a-f]{64})-json\.log/.exec(path)?.[1]
  if (id === undefined) return 'none'
  return { id, runtime: 'docker', podUid: entities.containerOf(id)?.podUid ?? '' }
}

function podmanPlace(path: string, entities: Entities): ContainerPlace | 'none' {
  for (const { id, logPath, podUid } of entities.eachContainer())
    if (logPath === path) return { id, runtime: 'podman', podUid }
  return 'none'
}

/** `/var/log/pods/<namespace>_<pod>_<uid>/<container>/<restarts>.log`, as the kubelet names it. */
function podPlace(path: string, entities: Entities): ContainerPlace | 'none' {
  const parts = /^\/var\/log\/pods\/([^/_]+)_([^/_]+)_([0-9a-f-]{32,36})\/([^/]+)\/\d+\.log/.exec(path)
  if (parts === null) return 'none'
  const [, namespace = '', pod = '', podUid = '', name = ''] = parts
  const container = entities.podOfUid(podUid)?.containers.find(each => each.name === name && each.id !== '')
  return { id: container?.id ?? linkedId(`${pod}_${namespace}_${name}-`, path), runtime: '', podUid }
}

/** The container's id by the link that the kubelet makes to its log; '' where there is none. */
function linkedId(prefix: string, path: string): string {
  try {
    for (const link of readdirSync(linkDirectory)) {
      if (!link.startsWith(prefix)) continue
      const id = /^([0-9a-f]{64})\.log$/.exec(link.slice(prefix.length))?.[1]
      if (id !== undefined && readlinkSync(join(linkDirectory, link)) === path) return id
    }
  } catch {
    // Not every kubelet makes links, and one may go while it is read.
  }
  return ''
}

const linkDirectory = '/var/log/containers'
