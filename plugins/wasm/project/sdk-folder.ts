/** Folder of the guest libraries and templates, from source and from `dist`. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @returns absolute path of the `wasm-sdk` folder that holds `assembly`, `c`, `rust` and `templates` */
export function sdkFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'wasm-sdk', 'assembly', 'index.ts'))) {
    const parent = dirname(folder)
    if (parent === folder) throw new Error('this installation has no wasm-sdk/assembly folder')
    folder = parent
  }
  return join(folder, 'wasm-sdk')
}
