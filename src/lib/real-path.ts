import { realpathSync } from 'node:fs'

/** Where a path leads, links followed; `otherwise` where it leads nowhere or may not be looked at. */
export function realPath(path: string, otherwise = ''): string {
  try {
    return realpathSync(path)
  } catch {
    return otherwise
  }
}
