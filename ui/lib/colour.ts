// Colours of series and services: the palette of Okabe and Ito, which works for all kinds of colour vision.

const series = 8

/** The role of the n-th series of a chart. */
export function seriesColour(n: number): string {
  return `var(--series-${(n % series) + 1})`
}

/** The same colour for a name on every page. */
export function nameColour(name: string): string {
  let hash = 2166136261
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619)
  // The last colour is grey, for everything without its own.
  return seriesColour((hash >>> 0) % (series - 1))
}

/** The current value of a role, as `rgb(…)`: canvases do not support CSS variables. */
export function computed(colour: string): string {
  probe.style.color = colour
  document.documentElement.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

const probe = document.createElement('span')
