/** The part of the WebAssembly interface of JavaScript that is used here; the libraries of TypeScript have it for browsers only. */
declare namespace WebAssembly {
  interface ModuleExportDescriptor {
    name: string
    kind: 'function' | 'table' | 'memory' | 'global' | 'tag'
  }

  interface ModuleImportDescriptor extends ModuleExportDescriptor {
    module: string
  }

  type Exports = Record<string, unknown>
  type Imports = Record<string, Record<string, unknown>>
  type ImportValue = unknown

  class Module {
    constructor(bytes: NodeJS.ArrayBufferView | ArrayBuffer)
    static exports(module: Module): ModuleExportDescriptor[]
    static imports(module: Module): ModuleImportDescriptor[]
  }

  class Instance {
    constructor(module: Module, imports?: Imports)
    readonly exports: Exports
  }

  class Memory {
    constructor(descriptor: { initial: number; maximum?: number; shared?: boolean })
    readonly buffer: ArrayBuffer
    /** @returns pages of 64 KiB before */
    grow(pages: number): number
  }

  /** Of a number; references and 64-bit numbers are not used here. */
  class Global {
    constructor(descriptor: { value: string; mutable?: boolean }, value?: number)
    value: number
  }

  class CompileError extends Error {}
  class LinkError extends Error {}
  class RuntimeError extends Error {}

  function compile(bytes: NodeJS.ArrayBufferView | ArrayBuffer): Promise<Module>
  function instantiate(module: Module, imports?: Imports): Promise<Instance>
  function validate(bytes: NodeJS.ArrayBufferView | ArrayBuffer): boolean
}
