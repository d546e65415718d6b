// Records whose content follows from their number, so that a test sees a wrong body.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Files, RecordLog, Stored } from '../../src/pipeline/disk/log.ts'
import { realFiles } from '../../src/pipeline/disk/real-files.ts'
import { openSegmentLog, type SegmentLogOptions } from '../../src/pipeline/disk/segment-log.ts'

/** A record with a body of about `bytes`. */
export function recordOf(seq: number, bytes = 600): Stored {
  const body = Buffer.alloc(bytes + (seq % 13))
  let state = seq * 2654435761 + 1
  for (let at = 0; at < body.length; at++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0
    body[at] = state >>> 16
  }
  const encoding = (['identity', 'gzip', 'zstd'] as const)[seq % 3] ?? 'gzip'
  const plainBytes = body.length * 10
  return {
    seq,
    items: 1 + (seq % 7),
    plainBytes,
    orderKeys: 2 ** (seq % 32),
    encoding,
    timeMs: 1.7e12 + seq,
    body,
  }
}

/** Fails where a record is not the one of its number. */
export function assertRecord(stored: Stored, bytes = 600): void {
  const want = recordOf(stored.seq, bytes)
  assert.ok(Buffer.from(want.body).equals(stored.body), `the body of record ${stored.seq} is another`)
  assert.deepEqual({ ...stored, body: 0 }, { ...want, body: 0 })
}

export function itemsOf(seqs: Iterable<number>): number {
  let items = 0
  for (const seq of seqs) items += 1 + (seq % 7)
  return items
}

/** Everything from `seq` on that is not settled. Every record is checked. */
export function readAll(log: RecordLog, seq = 1, bytes = 600): number[] {
  const seqs: number[] = []
  for (let stored = log.readFrom(seq); stored; stored = log.readFrom(stored.seq + 1)) {
    assertRecord(stored, bytes)
    seqs.push(stored.seq)
  }
  return seqs
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index)
}

/** An empty directory that goes with the test. */
export function scratch(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-log-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

export interface OpenedLog {
  readonly log: RecordLog
  /** What `fault` was told. */
  readonly faults: string[]
}

/** A log with small segments, whose end waits for a disk that is slow. */
export function openLog(
  directory: string,
  options: Partial<SegmentLogOptions> = {},
  files: Files = realFiles,
): OpenedLog {
  const faults: string[] = []
  const fault = (what: string, error: Error) => faults.push(`${what}: ${error.message}`)
  const log = openSegmentLog({
    directory,
    files,
    fsyncMs: () => 50,
    kind: 2,
    segmentBytes: 4096,
    closeMs: 60_000,
    fault,
    ...options,
  })
  return { log, faults }
}
