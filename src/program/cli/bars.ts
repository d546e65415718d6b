// Charts made of characters.

const eighths = '▁▂▃▄▅▆▇█'
const ascii = '_.-=+*%#'
const fillWidth = 10

/** Values as a row of small bars, the newest on the right; at most `columns`. */
export function barsOf(values: readonly (number | null)[], columns: number, unicode: boolean): string {
  const last = values.slice(-columns)
  const most = Math.max(0, ...last.map(value => value ?? 0))
  const signs = unicode ? eighths : ascii
  return last
    .map(value => {
      if (value === null) return ' '
      if (most === 0 || value <= 0) return signs[0]
      return signs[Math.min(7, Math.floor((value / most) * 7.999))]
    })
    .join('')
}

/** A fill level: `███░░░░░░░`. */
export function fillOf(share: number, unicode: boolean): string {
  const full = Math.ceil(Math.min(1, Math.max(0, share)) * fillWidth)
  return (unicode ? '█' : '#').repeat(full) + (unicode ? '░' : '.').repeat(fillWidth - full)
}
