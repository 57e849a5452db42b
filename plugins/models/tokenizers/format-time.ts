/** `strftime` in the C locale, for templates that write the date. */

const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
)
const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')
const DAY_MS = 86_400_000

const two = (number: number, fill = '0') => String(number).padStart(2, fill)

const FIELDS: Readonly<Record<string, (at: Date) => string>> = {
  a: (at) => DAYS[at.getDay()].slice(0, 3),
  A: (at) => DAYS[at.getDay()],
  b: (at) => MONTHS[at.getMonth()].slice(0, 3),
  B: (at) => MONTHS[at.getMonth()],
  d: (at) => two(at.getDate()),
  e: (at) => two(at.getDate(), ' '),
  F: (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`,
  H: (at) => two(at.getHours()),
  I: (at) => two(at.getHours() % 12 || 12),
  j: (at) => String(dayOfYear(at)).padStart(3, '0'),
  m: (at) => two(at.getMonth() + 1),
  M: (at) => two(at.getMinutes()),
  p: (at) => (at.getHours() < 12 ? 'AM' : 'PM'),
  S: (at) => two(at.getSeconds()),
  T: (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`,
  u: (at) => String(at.getDay() || 7),
  w: (at) => String(at.getDay()),
  y: (at) => two(at.getFullYear() % 100),
  Y: (at) => String(at.getFullYear()),
  '%': () => '%',
}

/** Formats local time. `%-d` omits leading zeros; unknown fields are kept. */
export function formatTime(format: string, at: Date): string {
  return format.replace(/%(-?)([a-zA-Z%])/g, (whole, minus: string, name: string) => {
    if (!Object.hasOwn(FIELDS, name)) return whole
    const text = FIELDS[name](at)
    return minus === '' ? text : text.replace(/^[0 ]+(?=\d)/, '')
  })
}

function dayOfYear(at: Date): number {
  const day = Date.UTC(at.getFullYear(), at.getMonth(), at.getDate())
  return (day - Date.UTC(at.getFullYear(), 0, 1)) / DAY_MS + 1
}
