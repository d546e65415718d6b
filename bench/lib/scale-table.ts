/** What bench/scale.ts makes more of, as its table names it, and in which steps. */
export const scaleAxes = [
  { name: 'processes', what: 'processes that sleep', steps: [100, 1000, 10_000] },
  { name: 'short_processes', what: 'short processes a second', steps: [100, 300, 1000] },
  { name: 'connections', what: 'idle connections, both ends here', steps: [100, 1000, 10_000, 50_000] },
  {
    name: 'services',
    what: 'services that make 400 requests a second together',
    steps: [10, 100, 500, 2000],
  },
  { name: 'routes', what: 'routes of 1,000 requests a second together', steps: [100, 1000, 5000] },
  { name: 'log_files', what: 'log files with 400 lines a second together', steps: [20, 200, 2000] },
] as const

export type ScaleName = (typeof scaleAxes)[number]['name']

/** The table of docs/footprint.md, from figures by name. `names`: the axes that were measured. */
export function scaleTable(
  of: (figure: string) => number,
  names: readonly ScaleName[] = scaleAxes.map(({ name }) => name),
): string {
  const rows = scaleAxes
    .filter(({ name }) => names.includes(name))
    .map(({ name, what, steps }) => {
      const cells = [0, ...steps].map(step => {
        const at = `scale.${name}.n${step}`
        return `${step.toLocaleString('en')}: ${of(`${at}.cpu_percent`).toFixed(1)} %, ${of(`${at}.anonymous_mib`).toFixed(0)} MiB`
      })
      const cpu = slope(of(`scale.${name}.cpu_percent_per_thousand`), '%')
      const memory = slope(of(`scale.${name}.mib_per_thousand`), 'MiB')
      return `| ${what} | ${cells.join('; ')} | ${cpu} | ${memory} |`
    })
  return [
    '| of what | how many: CPU of one core, anonymous memory | CPU per 1,000 | memory per 1,000 |',
    '|---|---|---|---|',
    ...rows,
  ].join('\n')
}

/** What more of it takes; measurements that scatter may find less. */
function slope(value: number, unit: string): string {
  return value < 0.05 ? 'none' : `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`
}
