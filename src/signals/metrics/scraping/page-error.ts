/** Fault of a page that made its scrape fail; the message describes it. */
export class PageError extends Error {
  override readonly name = 'PageError'
}
