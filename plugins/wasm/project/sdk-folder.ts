/** Folder of the guest libraries and templates, from source and from `dist`. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { foldersFrom } from '#shared'

/** @returns absolute path of the `wasm-sdk` folder that holds `assembly`, `c`, `rust` and `templates` */
export function sdkFolder(): string {
  for (const folder of foldersFrom(dirname(fileURLToPath(import.meta.url))))
    if (existsSync(join(folder, 'wasm-sdk', 'assembly', 'index.ts'))) return join(folder, 'wasm-sdk')
  throw new Error('this installation has no wasm-sdk/assembly folder')
}
