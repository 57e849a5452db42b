/** Stops the boot; its message is for the operator. */
export class BootError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BootError'
  }
}
