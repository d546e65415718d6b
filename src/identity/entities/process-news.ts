import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import type { ProcessNews } from '../../foundation/model/process-news.ts'
import { type ContainerPlace, noPlace, placeOfNames } from './container-place.ts'

const maxNews = 4_096
const staleMs = 60_000

/** Last kernel event of each process, for processes that ended before they were read from /proc. */
export class LastNews {
  readonly #news = new BoundedMap<number, { readonly news: ProcessNews; readonly ms: number }>(maxNews)

  add(news: ProcessNews, nowMs: number): void {
    const before = this.#news.get(news.pid)?.news
    // Exit events have no path.
    const path =
      news.path === '' && before !== undefined && sameStart(before.start, news.start)
        ? before.path
        : news.path
    this.#news.set(news.pid, { news: path === news.path ? news : { ...news, path }, ms: nowMs })
  }

  of(pid: number, nowMs: number): ProcessNews | undefined {
    const last = this.#news.get(pid)
    return last === undefined || nowMs - last.ms > staleMs ? undefined : last.news
  }
}

export function placeOfNews(news: ProcessNews | undefined): ContainerPlace {
  return news === undefined || news.cgroupNames.length === 0 ? noPlace : placeOfNames(news.cgroupNames)
}

/** Rounding nanoseconds as doubles may cross a tick. */
export function sameStart(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1
}
