/** A failure that the operator can act on: said in words, without a stack. */
export class CliError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CliError'
  }
}
