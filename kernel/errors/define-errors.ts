/** Error tables: each room lists its errors once; a row becomes a function that makes the error. */
import { type ErrorKind, type ErrorOptions, type ErrorSource, GatewayError } from './gateway-error.ts'

export interface ErrorRow<Args extends readonly unknown[]> {
  readonly kind: ErrorKind
  readonly source: ErrorSource
  /** `before-first-byte`: another worker may be tried while the client has seen nothing. Default: never. */
  readonly retry?: 'before-first-byte'
  /** The message: what is wrong, and what to do where that is not plain. */
  readonly text: (...args: Args) => string
}

// biome-ignore lint/suspicious/noExplicitAny: the only way to say "a row with whatever arguments"
type AnyRow = ErrorRow<any>

export type ErrorTable<Rows extends Record<string, AnyRow>> = {
  readonly [Code in keyof Rows]: Rows[Code] extends ErrorRow<infer Args> ? ErrorMaker<Args> : never
}

export interface ErrorMaker<Args extends readonly unknown[]> {
  (...args: Args): GatewayError
  /** The same error with a field name, a cause or extra headers. */
  with(options: ErrorOptions, ...args: Args): GatewayError
}

/** One row of one table, for the error reference. */
export interface DefinedError {
  readonly room: string
  readonly code: string
  readonly kind: ErrorKind
  readonly isRetryable: boolean
  readonly text: (...args: readonly unknown[]) => string
}

/** Every row that was defined in this process. */
export const definedErrors: DefinedError[] = []

/** Declares the errors of one room; the key of a row is its wire code. */
export function defineErrors<const Rows extends Record<string, AnyRow>>(
  room: string,
  rows: Rows,
): ErrorTable<Rows> {
  const table: Record<string, ErrorMaker<readonly unknown[]>> = {}
  for (const [code, row] of Object.entries(rows)) {
    definedErrors.push({ room, code, kind: row.kind, isRetryable: row.retry !== undefined, text: row.text })
    const make = (options: ErrorOptions | undefined, args: readonly unknown[]) =>
      new GatewayError(
        {
          code,
          kind: row.kind,
          source: row.source,
          isRetryable: row.retry !== undefined,
          message: row.text(...args),
        },
        options,
      )
    table[code] = Object.assign((...args: readonly unknown[]) => make(undefined, args), {
      with: (options: ErrorOptions, ...args: readonly unknown[]) => make(options, args),
    })
  }
  return Object.freeze(table) as ErrorTable<Rows>
}
