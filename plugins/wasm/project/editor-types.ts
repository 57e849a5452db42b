/** Writes the paths of the AssemblyScript and guest library types for editors. */
import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { sdkFolder } from './sdk-folder.ts'

/** How authors import the guest library; also its path inside a `node_modules` folder. */
export const LIBRARY = 'weir-gateway/wasm-sdk/assembly'

/** In the build folder, which is not committed; `assembly/tsconfig.json` of the project extends it. */
export const EDITOR_TYPES = join('build', 'tsconfig.json')

/** @param directory of an AssemblyScript project @throws what the file system throws */
export async function writeEditorTypes(directory: string): Promise<void> {
  const file = join(directory, EDITOR_TYPES)
  const paths = { [LIBRARY]: [join(sdkFolder(), 'assembly', 'index.ts')] }
  const settings = { extends: languageTypes(), compilerOptions: { paths } }
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify(settings, null, 2)}\n`)
}

/** Types of the gateway's compiler, else of the project's. */
function languageTypes(): string {
  const name = 'assemblyscript/std/assembly.json'
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch {
    return name
  }
}
