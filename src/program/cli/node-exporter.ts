import { ExitCode } from '../../foundation/lib/start-error.ts'
import type { Command } from './arguments.ts'

export const nodeExporter: Command = {
  name: 'node-exporter',
  summary: 'serve host metrics with the flags of node_exporter',
  flags: [],
  foreignFlags: true,
  exits: { [ExitCode.general]: 'any error, as node_exporter does' },
  run: async ({ words }) => (await import('./node-exporter/exporter.ts')).runExporter(words),
}
