import { hostname } from 'node:os'
import { gunzipSync, gzipSync } from 'node:zlib'
import { createTar } from 'nanotar'
import { type Build, build } from '../../../foundation/lib/build.ts'
import { errorText } from '../../../foundation/lib/logger.ts'
import type { Attempt } from '../../client/agent-client.ts'
import type { Collected, Part } from './part.ts'
import type { Scrub } from './scrub.ts'

/** Maximum size of a bundle before compression: all parts together. */
export const mostBundleBytes = 10_000_000

const Ki = 1024

/** Bytes to collect beyond a part's limit, so that a secret at the edge is recognized before cutting. */
const edge = 64 * Ki

interface FileEntry {
  readonly name: string
  readonly description: string
  readonly source: string
  readonly bytes: number
  /** The content was cut. */
  readonly truncated: boolean
  /** Number of `[REDACTED]` in it. */
  readonly redacted: number
}

/** `manifest.json`: what is in the bundle, what is missing, and why. */
export interface Manifest {
  readonly format: 1
  /** ISO 8601, UTC. */
  readonly created: string
  readonly host: string
  /** Build of the command that made the bundle. */
  readonly svc: Build
  readonly node: string
  readonly platform: string
  readonly agent: {
    readonly answered: boolean
    /** Address of the agent, '' if none answered. */
    readonly address: string
    /** Addresses that failed. */
    readonly attempts: readonly Attempt[]
  }
  readonly files: readonly FileEntry[]
  readonly missing: readonly {
    readonly name: string
    readonly description: string
    readonly source: string
    readonly reason: string
  }[]
}

export interface Bundle {
  readonly manifest: Manifest
  /** A `.tar.gz`. */
  readonly archive: Buffer
}

/** Collects all parts, in the order of the archive. Failed ones are listed in the manifest. */
export async function makeBundle(
  parts: readonly Part[],
  agent: Manifest['agent'],
  scrub: Scrub,
  now: Date = new Date(),
): Promise<Bundle> {
  const results = await Promise.all(parts.map(part => take(part, scrub)))
  const files: (FileEntry & { data: Buffer })[] = []
  const missing: Manifest['missing'][number][] = []
  for (const [i, { name, what, source }] of parts.entries()) {
    const result = results[i]!
    if ('why' in result) missing.push({ name, description: what, source, reason: result.why })
    else files.push({ name, description: what, source, ...result })
  }
  const manifest: Manifest = {
    format: 1,
    created: now.toISOString(),
    host: hostname(),
    svc: build(),
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    agent,
    files: files.map(({ data: _, ...entry }) => entry),
    missing,
  }
  const about = Buffer.from(scrub.json(JSON.stringify(manifest)))
  const time = now.toISOString().replace(/\.\d+|[-:]/g, '')
  const root = `svc-diagnostics-${hostname()
    .replace(/[^\w.-]/g, '_')
    .slice(0, 40)}-${time}`
  const tar = createTar(
    [{ name: 'README.txt', data: Buffer.from(readme) }, { name: 'manifest.json', data: about }, ...files].map(
      ({ name, data }) => ({ name: `${root}/${name}`, data }),
    ),
    { attrs: { mode: '600', uid: 0, gid: 0, mtime: now.getTime() } },
  )
  // Two blocks of zeros end an archive (POSIX, pax); the library does not guarantee them.
  return { manifest, archive: gzipSync(Buffer.concat([tar, Buffer.alloc(2 * 512)])) }
}

type Taken = Pick<FileEntry, 'bytes' | 'truncated' | 'redacted'> & { readonly data: Buffer }

async function take(part: Part, scrub: Scrub): Promise<Taken | { readonly why: string }> {
  const margin = edge + 3 * scrub.longest
  try {
    const collected = await part.collect(part.mostBytes + margin)
    if (part.form === 'gzip') return takePacked(collected, part.mostBytes, scrub)
    const clean = Buffer.from(scrub[part.form](collected.body.toString()))
    const most = collected.cut ? Math.min(part.mostBytes, clean.length - margin) : part.mostBytes
    const data = clean.subarray(0, Math.max(0, most))
    const redacted = data.toString('latin1').split('[REDACTED]').length - 1
    return { data, bytes: data.length, truncated: collected.cut || data.length < clean.length, redacted }
  } catch (error) {
    return { why: scrub.text(errorText(error)) }
  }
}

/**
 * Compressed content cannot be cut or redacted: it is included if complete and free of known secrets, otherwise left
 * out.
 */
function takePacked({ body, cut }: Collected, most: number, scrub: Scrub): Taken | { readonly why: string } {
  const data = Buffer.from(body as Buffer)
  if (cut || data.length > most) return { why: `it is larger than ${most} bytes` }
  if (scrub.finds(gunzipSync(data, { maxOutputLength: 64 * Ki * Ki })))
    return { why: 'it contains a secret of the configuration' }
  return { data, bytes: data.length, truncated: false, redacted: 0 }
}

const readme = `Contents

A bundle of "svc diagnostics": a snapshot of an svc agent and its host, for troubleshooting. manifest.json
lists every file with its source, and everything that is missing with the reason.

  agent/              data from the running agent: status, configuration, metrics, log, profiles
  configuration.json  the configuration that a start would use now, with the source of each value
  doctor.txt, .json   host checks of svc
  host/               kernel, host, and the processes of svc

Before you send it

Secrets are redacted: values that the configuration marks as secret, or that look like one, read [REDACTED].
The manifest counts them for each file. No program can detect every secret, and names of hosts, services,
addresses and URL paths are included. Review it first:

  tar -xzf BUNDLE.tar.gz && grep -rn REDACTED svc-diagnostics-*
`
