/** Stops the boot; the operator sees its message. */
export class BootError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BootError'
  }
}
