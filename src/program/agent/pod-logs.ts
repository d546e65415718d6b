// The owner of a log that the kubelet has a runtime write, or links to.

import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { realPath } from '../../foundation/lib/optional-files.ts'
import type { ContainerPlace } from '../../identity/entities/container-place.ts'
import type { Entities } from '../../identity/entities/entities.ts'

/** The owner of the record just read. */
export type PlaceOf = () => ContainerPlace

interface PodLog {
  readonly form: 'cri' | 'docker'
  readonly placeOf: PlaceOf
}

const firstWaitMs = 1_000
const longestWaitMs = 60_000

/**
 * Derives the owner of a log from its path, `<pods>/<namespace>_<pod>_<uid>/<container>/<restarts>.log`. `undefined`:
 * unknown, or the path leads to something other than a log: a process that can write beside logs must not make svc read
 * other files.
 */
export function podLogs(
  entities: Pick<Entities, 'podOfUid'>,
  directories: { readonly pods: string; readonly links: string },
): (path: string) => PodLog | undefined {
  return path => {
    const { pods, links } = directories
    const [pod = '', container = '', file = ''] = path.startsWith(`${pods}/`)
      ? path.slice(pods.length + 1).split('/')
      : []
    const parts = /^([^_]+)_([^_]+)_([0-9a-f-]{32,36})$/.exec(pod)
    const number = /^(\d{1,9})\.log$/.exec(file)?.[1]
    if (parts === null || number === undefined) return undefined
    const [, namespace = '', name = '', podUid = ''] = parts
    const real = realPath(path)
    const dockerId = dockerLogId(real)
    if (dockerId !== '') {
      const place = { id: dockerId, runtime: 'docker', podUid }
      return { form: 'docker', placeOf: () => place }
    }
    // A missing file may have been rotated away.
    if (real !== '' && !real.startsWith(`${realPath(pods)}/`)) return undefined
    const ofPod = () => {
      // By restart number: the reported container of a pod may be an earlier or later one.
      const restarts = Number(number)
      const listed = entities.podOfUid(podUid)?.containers
      const reported = listed?.find(
        each => each.name === container && each.restarts === restarts && each.id !== '',
      )
      return reported?.id ?? linkedId(links, `${name}_${namespace}_${container}-`, path)
    }
    return { form: 'cri', placeOf: found(podUid, ofPod) }
  }
}

/** Retries until the container is known: its log exists before it is reported. Until then the owner is its pod. */
function found(podUid: string, look: () => string): PlaceOf {
  let place: ContainerPlace = { id: '', runtime: '', podUid }
  let waitMs = firstWaitMs
  let nextMs = 0
  return () => {
    if (place.id !== '') return place
    const now = performance.now()
    if (now < nextMs) return place
    const id = look()
    if (id !== '') place = { id, runtime: '', podUid }
    nextMs = now + waitMs
    waitMs = Math.min(2 * waitMs, longestWaitMs)
    return place
  }
}

/** The container ID from the kubelet's link to its log; '' if there is none. */
function linkedId(directory: string, prefix: string, path: string): string {
  try {
    for (const link of readdirSync(directory)) {
      if (!link.startsWith(prefix)) continue
      const id = /^([0-9a-f]{64})\.log$/.exec(link.slice(prefix.length))?.[1]
      if (id !== undefined && readlinkSync(join(directory, link)) === path) return id
    }
  } catch {
    // Not every kubelet makes links, and one may vanish while it is read.
  }
  return ''
}

/** The container of a log of Docker's json-file driver; '' if it is not one. */
export function dockerLogId(path: string): string {
  return /\/([0-9a-f]{64})\/\1-json\.log$/.exec(path)?.[1] ?? ''
}
