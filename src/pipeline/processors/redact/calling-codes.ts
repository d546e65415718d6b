/**
 * Minimum and maximum digits of national numbers by calling code (ITU-T E.164 and the numbering plans sent to the ITU
 * by its members). Unlisted three-digit codes have 5 to 10.
 */
const plans =
  '1:10-10 7:10-10 20:8-10 27:9-9 30:10-10 31:9-9 32:8-9 33:9-9 34:9-9 36:8-9 39:6-11 40:9-9 41:9-9 43:6-13 44:9-10 45:8-8 ' +
  '46:7-10 47:8-8 48:9-9 49:6-12 51:8-9 52:10-11 53:6-8 54:10-11 55:10-11 56:9-9 57:8-10 58:10-10 60:8-10 61:9-9 62:7-12 ' +
  '63:8-10 64:8-10 65:8-8 66:8-9 81:9-10 82:8-11 84:9-10 86:10-11 90:10-10 91:10-10 92:9-10 93:9-9 94:9-9 95:7-10 98:10-10'

const least = new Uint8Array(1000)
const most = new Uint8Array(1000)
for (const plan of plans.split(' ')) {
  const [code, range] = plan.split(':') as [string, string]
  const [from, to] = range.split('-').map(Number) as [number, number]
  least[Number(code)] = from
  most[Number(code)] = to
}
// All other codes have three digits; these are their first two.
for (const zone of [
  21, 22, 23, 24, 25, 26, 29, 35, 37, 38, 42, 50, 59, 67, 68, 69, 80, 85, 87, 88, 96, 97, 99,
]) {
  for (let code = zone * 10; code < zone * 10 + 10; code++) {
    least[code] = 5
    most[code] = 10
  }
}

/**
 * Whether an international number may have this many digits. Its first three, as a number, contain the calling code.
 */
export function isInternationalLength(firstThree: number, digits: number): boolean {
  const one = Math.trunc(firstThree / 100)
  const two = Math.trunc(firstThree / 10)
  const size = most[one]! > 0 ? 1 : most[two]! > 0 ? 2 : 3
  const code = size === 1 ? one : size === 2 ? two : firstThree
  return digits - size >= least[code]! && digits - size <= most[code]! && most[code]! > 0
}
