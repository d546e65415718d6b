// Values stored in the browser. The page also works without storage.

/** Fallback until the page is closed. */
const here = new Map<string, string>()

export type Place = 'localStorage' | 'sessionStorage'

export function stored(place: Place, key: string): string | null {
  try {
    return window[place].getItem(key)
  } catch {
    return here.get(key) ?? null
  }
}

/** '' removes it. */
export function store(place: Place, key: string, value: string): void {
  try {
    if (value === '') window[place].removeItem(key)
    else window[place].setItem(key, value)
  } catch {
    if (value === '') here.delete(key)
    else here.set(key, value)
  }
}
