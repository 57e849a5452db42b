/** The rules of a registration as the gateway's own code has them, applied to a file without a gateway. */
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import { checkExports, checkImports } from '../../wasm/check-module.ts'
import type { WasmConfig } from '../../wasm/config.ts'
import { Refused, readModuleFile } from '../../wasm/module-file.ts'
import { BadModule, limitMemory, readSections } from '../../wasm/wasm-binary.ts'

/**
 * @param file absolute
 * @returns why the gateway would refuse the file; null when these rules are all kept
 */
export async function refusalOf(
  file: string,
  attachPoints: readonly AttachPoint[],
  usesWasi: boolean,
  config: WasmConfig,
): Promise<string | null> {
  try {
    const bytes = await readModuleFile(file, { roots: config.roots, maxBytes: config.maxFileBytes })
    readSections(bytes)
    const module = await WebAssembly.compile(limitMemory(bytes, config.memoryPages))
    checkImports(module, usesWasi)
    checkExports(module, attachPoints)
    if (usesWasi && !config.allowWasi) return 'WASI is off in this gateway: plugins.wasm.allowWasi'
    return null
  } catch (error) {
    const isForeseen =
      error instanceof Refused || error instanceof BadModule || error instanceof WebAssembly.CompileError
    if (!isForeseen) throw error
    return error.message
  }
}
