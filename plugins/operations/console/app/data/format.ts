/** Numbers with their units, and times. */
const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const threeDigits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const oneDecimal = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const money = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 4 })

/** Shown where a value is unknown. */
export const UNKNOWN = '–'

type Maybe = number | null | undefined
const shown = (value: Maybe, print: (known: number) => string) =>
  value === null || value === undefined || !Number.isFinite(value) ? UNKNOWN : print(value)

export const count = (value: Maybe) => shown(value, (known) => plain.format(known))
/** Such as `1 worker` and `2 workers`. @param what plural that ends with s */
export const counted = (value: number, what: string) =>
  `${count(value)} ${value === 1 ? what.slice(0, -1) : what}`
export const short = (value: Maybe) =>
  shown(value, (known) => (Math.abs(known) < 10_000 ? threeDigits.format(known) : compact.format(known)))
export const perSecond = (value: Maybe) => shown(value, (known) => `${short(known)}/s`)
export const cost = (value: Maybe) => shown(value, (known) => money.format(known))
/** @param share 0 to 1 */
export const percent = (share: Maybe) => shown(share, (known) => `${oneDecimal.format(known * 100)} %`)

export const milliseconds = (value: Maybe) =>
  shown(value, (ms) => {
    if (ms === 0) return '0 ms'
    if (ms < 1) return `${threeDigits.format(ms * 1_000)} µs`
    if (ms < 1_000) return `${threeDigits.format(ms)} ms`
    return ms < 120_000 ? `${threeDigits.format(ms / 1_000)} s` : `${threeDigits.format(ms / 60_000)} min`
  })

export const bytes = (value: Maybe) =>
  shown(value, (known) => {
    const units = ['B', 'KiB', 'MiB', 'GiB']
    const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, known)) / 10))
    return `${threeDigits.format(known / 1024 ** power)} ${units[power]}`
  })

/** Time since then, such as `12 s ago`. @param atMs milliseconds since 1970 */
export function ago(atMs: Maybe, nowMs = Date.now()): string {
  return shown(atMs, (at) => {
    const seconds = Math.max(0, Math.round((nowMs - at) / 1_000))
    if (seconds < 60) return `${seconds} s ago`
    if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
    return seconds < 172_800
      ? `${Math.floor(seconds / 3_600)} h ago`
      : `${Math.floor(seconds / 86_400)} d ago`
  })
}

/** Date and time of the browser's time zone. */
export function dateTime(time: string | number | null | undefined): string {
  if (time === null || time === undefined) return UNKNOWN
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toLocaleString('sv-SE')
}
