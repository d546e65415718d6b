// Which files have a limit of lines in budgets.json, and their number of lines.
import { lstatSync } from 'node:fs'
import { resolve } from 'node:path'
import { treeFiles } from './git.ts'

const counted = /^(?!src\/kernel\/gen\/|bpf\/gen\/|test\/fixtures\/).*\.(ts|tsx|css|c|h)$/
const isFile = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true // fixtures have links

export function isTest(file: string): boolean {
  return file.startsWith('test/') || file.endsWith('.test.ts')
}

/** Files below `root` (absolute) that git tracks or would add. */
export function filesOf(root: string): string[] {
  return treeFiles(root).filter(file => isFile(resolve(root, file)))
}

/** The limit of a file; undefined: none. */
export function lineLimit(file: string): 'source' | 'test' | 'tool' | undefined {
  if (!counted.test(file)) return undefined
  return isTest(file) ? 'test' : file.startsWith('tools/') ? 'tool' : 'source'
}

export function countLines(text: string): number {
  return text.split('\n').length - 1
}
