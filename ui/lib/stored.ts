// Values that the browser keeps for the user. The page also works if the browser refuses to keep them.

/** Kept until the page is closed, where nothing else can. */
const here = new Map<string, string>()

export type Place = 'localStorage' | 'sessionStorage'

export function stored(place: Place, key: string): string | null {
  try {
    return window[place].getItem(key)
  } catch {
    return here.get(key) ?? null
  }
}

/** '' forgets it. */
export function store(place: Place, key: string, value: string): void {
  try {
    if (value === '') window[place].removeItem(key)
    else window[place].setItem(key, value)
  } catch {
    if (value === '') here.delete(key)
    else here.set(key, value)
  }
}
