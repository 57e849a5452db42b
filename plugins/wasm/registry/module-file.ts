/** Reads the file of a module. */
import { isAbsolute } from 'node:path'
import { FileError, readRootedFile } from '#shared'
import type { WasmConfig } from '../config.ts'

/** The registration is rejected; the message is for the caller. */
export class Refused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Refused'
  }
}

/**
 * Reads the bytes once: what is checked is what runs.
 * @param roots folders that must contain the file; null if the configuration file names the path
 * @throws Refused
 */
export function readModuleFile(
  path: string,
  roots: readonly string[] | null,
  { maxFileBytes }: WasmConfig,
): Uint8Array<ArrayBuffer> {
  if (!isAbsolute(path)) throw new Refused('file_path must be absolute')
  const rules = { roots, rootsSetting: 'plugins.wasm.roots', extensions: ['.wasm'], maxBytes: maxFileBytes }
  try {
    const bytes = readRootedFile(path, rules)
    if (bytes.length === 0) throw new FileError(`${path} is empty`)
    return bytes
  } catch (error) {
    if (error instanceof FileError) throw new Refused(`file_path ${error.message}`, error)
    throw error
  }
}
