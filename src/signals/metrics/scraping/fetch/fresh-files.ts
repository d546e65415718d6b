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
 * Small files that others replace, such as passwords: read again for each request, but for those that come within a
 * second. A job of a thousand targets shares one file.
 */
export class FreshFiles {
  readonly #known: BoundedMap<string, Known>
  readonly #freshMs: number

  constructor({ files = 1000, freshMs = 1000 } = {}) {
    this.#known = small(new BoundedMap(files))
    this.#freshMs = freshMs
  }

  /** What it holds now. Rejects with an `Error` whose message is the cause alone. */
  read(path: string): Promise<string> {
    const known = this.#known.get(path)
    const now = performance.now()
    // A file system that hangs holds one thread of the pool, not one more with each request.
    if (known !== undefined && (known.underWay || now - known.sinceMs < this.#freshMs)) return known.text
    const entry = { text: readSmall(path), sinceMs: now, underWay: true }
    this.#known.set(path, entry)
    entry.text.then(
      () => {
        entry.underWay = false
      },
      // Who asks now hears of it; the next ones may find it fixed.
      () => this.#known.delete(path),
    )
    return entry.text
  }

  /** It is read anew when it is asked for next. */
  forget(path: string): void {
    this.#known.delete(path)
  }
}

/** What all targets share. */
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
