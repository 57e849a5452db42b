/** Creates a module project from a template. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Language } from './build-result.ts'
import { EDITOR_TYPES, writeEditorTypes } from './editor-types.ts'
import { sdkFolder } from './sdk-folder.ts'

export const LANGUAGES: readonly Language[] = Object.freeze([
  'assemblyscript',
  'rust',
  'go',
  'c',
  'wat',
] as const)

/** Files that a template takes from an example. */
const FROM_EXAMPLES: Readonly<Partial<Record<Language, readonly string[]>>> = {
  go: ['wasm-go/main.go', 'wasm-go/gateway.go', 'wasm-go/cases/on_request.json'],
  wat: ['wasm-wat/module.wat', 'wasm-wat/cases/on_request.json'],
}

interface NewProject {
  /** Folder to create; must be empty if it exists. */
  readonly directory: string
  /** Name of the package: lower case, digits, hyphens. */
  readonly name: string
  readonly language: Language
}

type NewProjectResult =
  | { readonly isOk: true; readonly directory: string; readonly files: readonly string[] }
  | { readonly isOk: false; readonly problem: string; readonly next: string }

const NAME = /^[a-z][a-z0-9-]{0,63}$/

/** Overwrites nothing. Invalid requests are part of the result. */
export async function newProject({ directory, name, language }: NewProject): Promise<NewProjectResult> {
  if (!NAME.test(name)) {
    return failed(`${name} is not a valid package name`, 'use lower-case letters, digits and hyphens')
  }
  if (!LANGUAGES.includes(language)) {
    return failed(`no template for ${language}`, `use one of ${LANGUAGES.join(', ')}`)
  }
  const target = resolve(directory)
  if (existsSync(target) && (await readdir(target)).length > 0) {
    return failed(`${target} is not empty`, 'choose a folder that does not exist yet')
  }
  const template = join(sdkFolder(), 'templates', language)
  const sources = new Map<string, string>()
  // npm leaves .gitignore out of packages.
  for (const source of await filesOf(template))
    sources.set(source.slice(template.length + 1).replace(/^(gitignore$|cargo\/)/, '.$1'), source)
  for (const place of FROM_EXAMPLES[language] ?? [])
    sources.set(place.slice(place.indexOf('/') + 1), join(sdkFolder(), '..', 'examples', place))
  if (language === 'rust') {
    // A copy, so that the project builds on every machine.
    const crate = join(sdkFolder(), 'rust')
    for (const source of [join(crate, 'Cargo.toml'), ...(await filesOf(join(crate, 'src')))])
      sources.set(join('weir-sdk', source.slice(crate.length + 1)), source)
  }
  for (const [path, source] of sources) {
    const text = await readFile(source, 'utf8')
    await mkdir(dirname(join(target, path)), { recursive: true })
    await writeFile(join(target, path), text.replaceAll('{{name}}', name))
  }
  const files = [...sources.keys()]
  if (language === 'assemblyscript') {
    await writeEditorTypes(target)
    files.push(EDITOR_TYPES)
  }
  return { isOk: true, directory: target, files: files.sort() }
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

function failed(problem: string, next: string): NewProjectResult {
  return { isOk: false, problem, next }
}
