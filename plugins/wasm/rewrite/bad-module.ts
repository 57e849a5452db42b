/** A file that is not a module the gateway can run; the message says why. */
export class BadModule extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadModule'
  }
}
