/** Error tables: each module lists its errors once; a row becomes a function that creates the error. */
import { type ErrorKind, type ErrorOptions, type ErrorSource, GatewayError } from './gateway-error.ts'

export interface ErrorRow<Args extends readonly unknown[]> {
  readonly kind: ErrorKind
  readonly source: ErrorSource
  /** `before-first-byte`: another worker may be tried while the client has seen nothing. Default: never. */
  readonly retry?: 'before-first-byte'
  /** The message: what failed, and what to do about it. */
  readonly text: (...args: Args) => string
}

// biome-ignore lint/suspicious/noExplicitAny: a row with any arguments
type AnyRow = ErrorRow<any>

export type ErrorTable<Rows extends Record<string, AnyRow>> = {
  readonly [Code in keyof Rows]: Rows[Code] extends ErrorRow<infer Args> ? ErrorMaker<Args> : never
}

/** Makes the errors of one row. @param args of the row's text */
export interface ErrorMaker<Args extends readonly unknown[]> {
  (...args: Args): GatewayError
  /** The same error with a field name, a cause or extra headers. */
  with(options: ErrorOptions, ...args: Args): GatewayError
}

/** One row of one table, for the error reference. */
export interface DefinedError {
  readonly module: string
  readonly code: string
  readonly kind: ErrorKind
  readonly isRetryable: boolean
  readonly text: (...args: readonly unknown[]) => string
}

/** Every row defined in this process. */
export const definedErrors: DefinedError[] = []

/** Declares the errors of one module; the key of a row is its code on the wire. */
export function defineErrors<const Rows extends Record<string, AnyRow>>(
  module: string,
  rows: Rows,
): ErrorTable<Rows> {
  const table: Record<string, ErrorMaker<readonly unknown[]>> = {}
  for (const [code, row] of Object.entries(rows)) {
    definedErrors.push({ module, code, kind: row.kind, isRetryable: row.retry !== undefined, text: row.text })
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
