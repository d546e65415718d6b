import type { SampleKey } from './exposition.ts'
import { KeyScanner, unescaped } from './key-scanner.ts'

const scanner = new KeyScanner()

/** Name and labels of a sample. Undefined if these bytes are not exactly one key. */
export function sampleKey(body: Buffer, from: number, to: number): SampleKey | undefined {
  if (!scanner.scan(body, from, to, false, false) || scanner.end !== to) return undefined
  const { marks } = scanner
  const labels = new Map<string, string>()
  for (let i = 0; i < 4 * scanner.labels; i += 4)
    labels.set(unescaped(body, marks[i]!, marks[i + 1]!), unescaped(body, marks[i + 2]!, marks[i + 3]!))
  return { name: unescaped(body, scanner.nameFrom, scanner.nameTo), labels }
}
