import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'

/**
 * Filter of names: those that `include` matches and `exclude` does not. An empty pattern filters nothing. Throws
 * an error with a reason for an invalid pattern.
 */
export function nameFilter(include: string, exclude: string): (name: string) => boolean {
  const wanted = include === '' ? undefined : linearRegExp(include)
  const unwanted = exclude === '' ? undefined : linearRegExp(exclude)
  return name => (wanted === undefined || wanted.test(name)) && !unwanted?.test(name)
}
