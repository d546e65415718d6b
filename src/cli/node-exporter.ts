import type { Command } from './arguments.ts'

export const nodeExporter: Command = {
  name: 'node-exporter',
  summary: 'serve metrics of this host, with the flags of the exporter that it replaces',
  flags: [],
  foreignFlags: true,
  run: async ({ words }) => (await import('./node-exporter/exporter.ts')).runExporter(words),
}
