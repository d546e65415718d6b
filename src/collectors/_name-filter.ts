import { linearRegExp } from '../lib/linear-regexp.ts'

/**
 * Which names are shown: those that `include` matches and `exclude` does not. An empty pattern filters nothing. Throws,
 * in words, where a pattern is none.
 */
export function nameFilter(include: string, exclude: string): (name: string) => boolean {
  const wanted = include === '' ? undefined : linearRegExp(include)
  const unwanted = exclude === '' ? undefined : linearRegExp(exclude)
  return name => (wanted === undefined || wanted.test(name)) && !unwanted?.test(name)
}
