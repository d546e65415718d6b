import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { fileCause } from '../../../../foundation/lib/file-content.ts'
import { readSmallFile } from '../../../../foundation/lib/small-file.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'

const maxBytes = 256 * 1024

interface Known {
  readonly text: Promise<string>
  readonly sinceMs: number
  underWay: boolean
}

/**
 * Small files that other programs replace, such as passwords: cached for a second, so that the thousand targets of a
 * job share one read.
 */
export class FreshFiles {
  readonly #known: BoundedMap<string, Known>
  readonly #freshMs: number

  constructor({ files = 1000, freshMs = 1000 } = {}) {
    this.#known = small(new BoundedMap(files))
    this.#freshMs = freshMs
  }

  /** Current content. Rejects with an `Error` whose message is only the cause. */
  read(path: string): Promise<string> {
    const known = this.#known.get(path)
    const now = performance.now()
    // A hanging file system blocks one thread of the pool, not one more per request.
    if (known !== undefined && (known.underWay || now - known.sinceMs < this.#freshMs)) return known.text
    const entry = { text: readSmall(path), sinceMs: now, underWay: true }
    this.#known.set(path, entry)
    entry.text.then(
      () => {
        entry.underWay = false
      },
      // Current callers get the error; later ones may find it fixed.
      () => this.#known.delete(path),
    )
    return entry.text
  }

  /** Drops the cached content. */
  forget(path: string): void {
    this.#known.delete(path)
  }
}

/** Cache shared by all targets. */
export const freshFiles = new FreshFiles()

async function readSmall(path: string): Promise<string> {
  try {
    return (await readSmallFile(path, maxBytes)).toString('utf8')
  } catch (error) {
    throw new Error((error as NodeJS.ErrnoException).code ? fileCause(error) : (error as Error).message, {
      cause: error,
    })
  }
}
