/** A file that is not a module the gateway can run; the message says why. */
export class BadModule extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadModule'
  }
}

/** The module uses a feature of WebAssembly that the gateway does not run. */
export class UnsupportedFeature extends BadModule {}
