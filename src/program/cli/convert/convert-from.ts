import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { terminalText } from '../../../foundation/lib/terminal-text.ts'
import { say, written } from '../terminal.ts'
import { Conversion } from './conversion.ts'
import { flagsIn, fromNodeExporter } from './from-node-exporter.ts'
import { fromObi, variablesOf } from './from-obi.ts'
import { fromPrometheus } from './from-prometheus.ts'
import { readInput } from './input.ts'

export type Source = 'node-exporter' | 'prometheus' | 'obi'

/** Prints the configuration, and on standard error what is missing from it. Throws a `StartError` for invalid input. */
export async function convertFrom(source: Source, words: readonly string[]): Promise<ExitCode> {
  const conversion = new Conversion(`svc convert ${source}`)
  collect(source, words, conversion)
  const { text, leftOut, notes } = conversion.finish()
  for (const line of notes) say(`note: ${terminalText(line, false)}\n`)
  for (const line of leftOut) say(`left out: ${terminalText(line, false)}\n`)
  await written(text)
  return leftOut.length > 0 ? ExitCode.general : ExitCode.ok
}

function collect(source: Source, words: readonly string[], conversion: Conversion): void {
  const [first, ...rest] = words
  if (source === 'node-exporter') {
    const isFile = first === '-' || (first !== undefined && !/^[-@]/.test(first))
    const flags = isFile ? [...flagsIn(readInput(first), conversion), ...rest] : words
    fromNodeExporter(flags, conversion)
    return
  }
  const [beyond] = rest
  if (beyond !== undefined) throw new StartError(`unexpected word "${beyond}"`, ExitCode.usage)
  if (source === 'prometheus') {
    if (first === undefined)
      throw new StartError(
        'no file given; run svc convert prometheus /etc/prometheus/prometheus.yml',
        ExitCode.usage,
      )
    fromPrometheus(readInput(first), conversion)
  } else fromObi(first === undefined ? { variables: variablesOf(process.env) } : readInput(first), conversion)
}
