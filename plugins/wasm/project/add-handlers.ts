/** Adds the requested handlers to a new project, each with a file and a case. */
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AttachPoint, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import { type LibraryLanguage, sdkFolder } from './build-result.ts'
import { filesOf } from './new-project.ts'

interface Form {
  /** Folder of the sources in a project; empty for the project itself. */
  readonly folder: string
  /** Folder of the handlers' templates, with the entry of a project without the first handler. */
  readonly templates: string
  readonly extension: string
  readonly entry: string
  /** Line of the entry that includes a handler; empty if the compiler reads every file. */
  include(exportName: string): string
}

const FORMS: Readonly<Record<LibraryLanguage, Form>> = {
  assemblyscript: {
    folder: 'assembly',
    templates: 'assembly',
    extension: 'ts',
    entry: 'index.ts',
    include: (name) => `export { ${name} } from './${name}'`,
  },
  rust: {
    folder: 'src',
    templates: 'rust',
    extension: 'rs',
    entry: 'lib.rs',
    include: (name) => `mod ${name};\nweir_sdk::${name}!(${name}::handle);`,
  },
  go: {
    folder: '',
    templates: 'go',
    extension: 'go',
    entry: 'main.go',
    include: () => '',
  },
  c: {
    folder: '',
    templates: 'c',
    extension: 'c',
    entry: 'module.c',
    include: (name) => `#include "${name}.c"`,
  },
}

/** The handler of the template. */
const FIRST: AttachPoint = 'OnRequest'

/** @returns all files of the project */
export async function addHandlers(
  directory: string,
  language: LibraryLanguage,
  points: readonly AttachPoint[],
): Promise<string[]> {
  const form = FORMS[language]
  const handlers = join(sdkFolder(), 'templates', 'handlers')
  const templates = join(handlers, form.templates)
  const entry = join(directory, form.folder, form.entry)
  if (!points.includes(FIRST)) {
    await copyFile(join(templates, form.entry), entry)
    await rm(join(directory, 'cases'), { recursive: true })
  }
  await mkdir(join(directory, 'cases'), { recursive: true })
  const names = points.filter((point) => point !== FIRST).map((point) => EXPORT_OF_ATTACH_POINT[point])
  for (const name of names) {
    const file = `${name}.${form.extension}`
    await copyFile(join(templates, file), join(directory, form.folder, file))
    await copyFile(join(handlers, 'cases', `${name}.json`), join(directory, 'cases', `${name}.json`))
  }
  const includes = names.map(form.include).join('\n').trim()
  if (includes !== '') await writeFile(entry, `${await readFile(entry, 'utf8')}\n${includes}\n`)
  return (await filesOf(directory)).sort()
}
