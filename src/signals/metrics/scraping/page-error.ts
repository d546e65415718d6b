/** What is wrong with a page, so that its scrape failed, in words. */
export class PageError extends Error {
  override readonly name = 'PageError'
}
