/** Formats JSON log lines for a terminal. */
import { isObject } from '../wire/is-object.ts'

const COLOR: Readonly<Record<string, string>> = {
  trace: '\u001b[90m',
  debug: '\u001b[90m',
  info: '\u001b[32m',
  warn: '\u001b[33m',
  error: '\u001b[31m',
}
const RESET = '\u001b[0m'
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression detects control characters
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/

/**
 * One line such as `12:03:04.567 INFO  [0] listening port=30000`.
 * Values with blanks or control characters are quoted, so that they cannot contain terminal sequences.
 *
 * @param json one line of the logger; any other text is returned unchanged
 */
export function toTerminalLine(json: string): string {
  const fields = parseObject(json)
  if (fields === null) return json
  const { level, time, thread, msg, err, ...rest } = fields
  const word = String(level)
  const clock = String(time).slice(11, 23)
  const parts = [
    `${clock} ${COLOR[word] ?? ''}${word.toUpperCase().padEnd(5)}${RESET} [${thread}] ${show(msg)}`,
  ]
  for (const [name, value] of Object.entries(rest)) parts.push(`${name}=${show(value, true)}`)
  return `${parts.join(' ')}${showError(err)}\n`
}

function show(value: unknown, quoteBlanks = false): string {
  if (typeof value !== 'string') return JSON.stringify(value) ?? ''
  const needsQuotes = CONTROL_CHARACTER.test(value) || (quoteBlanks && (value === '' || value.includes(' ')))
  return needsQuotes ? JSON.stringify(value).replace(/[\u007f-\u009f]/g, '?') : value
}

function showError(err: unknown): string {
  if (err === undefined) return ''
  if (typeof err !== 'object' || err === null || !('stack' in err)) return ` err=${show(err, true)}`
  return String(err.stack)
    .split('\n')
    .map((line) => `\n    ${show(line)}`)
    .join('')
}

function parseObject(json: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
