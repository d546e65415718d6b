/** States that bench/footprint.ts measures, as its table names them. */
export const footprintRows = [
  { part: 'quiet', name: 'defaults, a quiet host' },
  { part: 'some', name: 'defaults, 1,000 requests a second' },
  { part: 'many', name: 'defaults, 10,000 requests a second' },
  { part: 'all', name: 'everything on, a quiet host' },
  { part: 'all-some', name: 'everything on, 1,000 requests a second' },
  { part: 'collector', name: '`mode: collector`, no targets' },
  { part: 'host-metrics', name: 'agent with host metrics alone, scraped each 15 s', scraped: true },
  { part: 'exporter', name: '`svc node-exporter`, scraped each 15 s', scraped: true },
] as const

export type FootprintPart = (typeof footprintRows)[number]['part']

/** The table of docs/footprint.md, from figures by name. `parts`: those that were measured. */
export function footprintTable(
  of: (figure: string) => number,
  parts: readonly FootprintPart[] = footprintRows.map(({ part }) => part),
): string {
  const rows = footprintRows
    .filter(({ part }) => parts.includes(part))
    .map(row => {
      const figure = (name: string, digits: number) => of(`footprint.${row.part}.${name}`).toFixed(digits)
      const scrape = 'scraped' in row ? ` (${figure('scrape_ms', 0)} ms a scrape)` : ''
      const cells = [
        `${row.name}${scrape}`,
        `${figure('cpu_percent', 2)} %`,
        figure('rss_mib', 0),
        figure('anonymous_mib', 0),
        figure('most_rss_mib', 0),
      ]
      return `| ${cells.join(' | ')} |`
    })
  return [
    '| | CPU of one core | resident MiB | of it anonymous | highest resident |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}
