/** Adds the requested handlers to a new project, each with a file and a case. */
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AttachPoint, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import type { LibraryLanguage } from '../project/build-result.ts'
import { sdkFolder } from '../project/sdk-folder.ts'

interface Form {
  /** Folder of the sources in projects and templates. */
  readonly folder: string
  readonly extension: string
  readonly entry: string
  /** Entry of a project without the template's handler. */
  readonly bareEntry: string
  /** Lines of the entry that include a handler. */
  include(exportName: string): string
}

const ASSEMBLYSCRIPT: Form = {
  folder: 'assembly',
  extension: 'ts',
  entry: 'index.ts',
  bareEntry: `/** What the module needs, and its handlers. */
import { Description } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).reusesInstance().send()
}
`,
  include: (name) => `export { ${name} } from './${name}'`,
}

const RUST: Form = {
  folder: 'src',
  extension: 'rs',
  entry: 'lib.rs',
  bareEntry: `//! What the module needs, and its handlers.

use weir_sdk::Description;

weir_sdk::describe!(Description::new().needs_headers(&[]).reuses_instance());
`,
  include: (name) => `mod ${name};\nweir_sdk::${name}!(${name}::handle);`,
}

/** The handler of the template. */
const FIRST: AttachPoint = 'OnRequest'

/** @returns all files of the project */
export async function addHandlers(
  directory: string,
  language: LibraryLanguage,
  points: readonly AttachPoint[],
): Promise<string[]> {
  const form = language === 'rust' ? RUST : ASSEMBLYSCRIPT
  const templates = join(sdkFolder(), 'templates', 'handlers')
  const entry = join(directory, form.folder, form.entry)
  if (!points.includes(FIRST)) {
    await writeFile(entry, form.bareEntry)
    await rm(join(directory, 'cases'), { recursive: true })
  }
  await mkdir(join(directory, 'cases'), { recursive: true })
  const names = points.filter((point) => point !== FIRST).map((point) => EXPORT_OF_ATTACH_POINT[point])
  for (const name of names) {
    const source = join(form.folder, `${name}.${form.extension}`)
    await copyFile(join(templates, source), join(directory, source))
    await copyFile(join(templates, 'cases', `${name}.json`), join(directory, 'cases', `${name}.json`))
  }
  await writeFile(entry, `${await readFile(entry, 'utf8')}\n${names.map(form.include).join('\n')}\n`)
  const all = await readdir(directory, { recursive: true, withFileTypes: true })
  return all
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(directory.length + 1))
    .sort()
}
