// Colours of series and services: Okabe and Ito's, which people with any kind of sight tell apart.

const series = 8

/** The role of the n-th series of a chart. */
export function seriesColour(n: number): string {
  return `var(--series-${(n % series) + 1})`
}

/** The same colour for a name on every page. */
export function nameColour(name: string): string {
  let hash = 2166136261
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619)
  // The last one is grey, which stands for nobody in particular.
  return seriesColour((hash >>> 0) % (series - 1))
}

/** What a role comes to now, as `rgb(…)`: canvases know no variables. */
export function computed(colour: string): string {
  probe.style.color = colour
  document.documentElement.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

const probe = document.createElement('span')
