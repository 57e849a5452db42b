/** The one way in which a file is said to be no module that the gateway can take. */
export class BadModule extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadModule'
  }
}
