/** The error reference, generated from the error tables. */
import { type DefinedError, definedErrors } from '../../../kernel/errors/define-errors.ts'
import { STATUS_OF_KIND } from '../../../kernel/errors/gateway-error.ts'
import { code, toPage, toTable } from './tables.ts'

/** Placeholder for the arguments of a message. */
const ANY = '…'

/** All error tables must have been imported before. */
export function errorsPage(): string {
  const byCode = Map.groupBy(definedErrors, (row) => row.code)
  const rows = [...byCode].map(([name, found]) => ({ name, status: STATUS_OF_KIND[found[0].kind], found }))
  rows.sort((a, b) => a.status - b.status || (a.name < b.name ? -1 : 1))
  return toPage(
    'Error reference',
    'Every error code of the gateway, by HTTP status. Formats differ by route; the code is always in the body and in the header `x-weir-error-code`. A worker’s own error codes are passed on.',
    toTable(
      ['status', 'code', 'message', 'tried on another worker'],
      rows.map(({ name, status, found }) => [
        String(status),
        code(name),
        [...new Set(found.map(messageOf))].join(' / '),
        found.some(({ isRetryable }) => isRetryable) ? 'yes' : '',
      ]),
    ),
  )
}

function messageOf({ text }: DefinedError): string {
  try {
    const message = text(...Array.from({ length: text.length }, () => ANY))
    // Members of a placeholder, and numbers made of it.
    return message.replace(/\b(?:undefined|NaN)\b/g, ANY)
  } catch {
    // The message needs values that a placeholder cannot stand for.
    return ''
  }
}
