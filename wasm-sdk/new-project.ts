/** Makes a module project from the template of a language. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import type { Language } from './build-result.ts'
import { sdkFolder } from './sdk-folder.ts'

export const LANGUAGES: readonly Language[] = Object.freeze([
  'assemblyscript',
  'rust',
  'go',
  'c',
  'wat',
] as const)

/** What a template takes from an example, which shows the same. */
const FROM_EXAMPLES: Readonly<Partial<Record<Language, readonly string[]>>> = {
  go: ['wasm-go/main.go', 'wasm-go/gateway.go', 'wasm-go/cases/on_request.json'],
  wat: ['wasm-wat/module.wat', 'wasm-wat/cases/on_request.json'],
}

export interface NewProject {
  /** Folder to make; it must be empty if it is there. */
  readonly directory: string
  /** Name of the package: lower case, digits, hyphens. */
  readonly name: string
  readonly language: Language
}

export type NewProjectResult =
  | { readonly isOk: true; readonly directory: string; readonly files: readonly string[] }
  | { readonly isOk: false; readonly problem: string; readonly next: string }

const NAME = /^[a-z][a-z0-9-]{0,63}$/

/** Overwrites nothing. Never throws for what is wrong with the request: the result says it. */
export async function newProject({ directory, name, language }: NewProject): Promise<NewProjectResult> {
  if (!NAME.test(name)) {
    return failed(`${name} is no name of a package`, 'use lower-case letters, digits and hyphens')
  }
  if (!LANGUAGES.includes(language)) {
    return failed(`there is no template for ${language}`, `it is one of ${LANGUAGES.join(', ')}`)
  }
  const target = resolve(directory)
  if (existsSync(target) && (await readdir(target)).length > 0) {
    return failed(`${target} is not empty`, 'name a folder that is not there yet')
  }
  const template = join(sdkFolder(), 'templates', language)
  const values: Readonly<Record<string, string>> = {
    name,
    sdk: join(sdkFolder(), 'rust'),
    library: join(sdkFolder(), 'assembly'),
    std: languageTypes(),
  }
  const entries = await readdir(template, { recursive: true, withFileTypes: true })
  const sources = new Map<string, string>()
  for (const entry of entries.filter((entry) => entry.isFile())) {
    const source = join(entry.parentPath, entry.name)
    // Packages leave files out whose names begin with a dot.
    sources.set(source.slice(template.length + 1).replace(/^(gitignore$|cargo\/)/, '.$1'), source)
  }
  for (const place of FROM_EXAMPLES[language] ?? [])
    sources.set(place.slice(place.indexOf('/') + 1), join(sdkFolder(), '..', 'examples', place))
  const files: string[] = []
  for (const [path, source] of sources) {
    const text = await readFile(source, 'utf8')
    await mkdir(dirname(join(target, path)), { recursive: true })
    await writeFile(
      join(target, path),
      text.replaceAll(/\{\{(\w+)\}\}/g, (whole, key) => values[key] ?? whole),
    )
    files.push(path)
  }
  return { isOk: true, directory: target, files: files.sort() }
}

/** What editors need to know of AssemblyScript: of the compiler that came with the gateway, else of the project's own. */
function languageTypes(): string {
  const name = 'assemblyscript/std/assembly.json'
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch {
    return name
  }
}

function failed(problem: string, next: string): NewProjectResult {
  return { isOk: false, problem, next }
}
