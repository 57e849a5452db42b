/** The rules of a registration as the gateway's own code has them, applied to a file without a gateway. */
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import { buildGuest, compileModule } from '../instances/build-guest.ts'
import { checkExports, checkImports } from '../instances/check-module.ts'
import { Refused, readModuleFile } from '../registry/module-file.ts'
import { BadModule } from '../rewrite/bad-module.ts'
import { readSections } from '../rewrite/sections.ts'

/**
 * The roots are not checked: they are folders of the gateway's machine.
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
    const bytes = readModuleFile(file, null, config)
    readSections(bytes)
    const module = await compileModule(bytes)
    checkImports(module, usesWasi)
    checkExports(module, attachPoints)
    await buildGuest(bytes, 'fresh', config)
    if (usesWasi && !config.allowWasi) return 'WASI is off in this gateway: plugins.wasm.allowWasi'
    return null
  } catch (error) {
    if (error instanceof Refused || error instanceof BadModule) return error.message
    throw error
  }
}
