/** Why a module is not registered; the reason is part of the response. Loaded by guest threads too, without the kernel. */

/** A module or a change of a module is rejected; the message is for the caller. */
export class ModuleRejected extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ModuleRejected'
  }
}

/** The file is not a module that the gateway can run; the message says why. */
export class BadModule extends ModuleRejected {
  constructor(message: string) {
    super(message)
    this.name = 'BadModule'
  }
}

/** The module uses a feature of WebAssembly that the gateway does not run. */
export class UnsupportedFeature extends BadModule {}
