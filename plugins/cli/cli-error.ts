/** A failure that the operator can fix; printed without a stack. */
export class CliError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CliError'
  }
}
