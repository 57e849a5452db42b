/** Creates a module project from a template or an example. It builds on every machine after `npm ci`. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { languageOf } from './build.ts'
import { type Language, sdkFolder } from './build-result.ts'

/** Folder of the library in projects whose compiler does not read it from node_modules. */
const COPY = 'weir-sdk'

/** Files of the library that projects of a language have a copy of, below `wasm-sdk`. */
const LIBRARIES: Readonly<Partial<Record<Language, { readonly from: string; readonly to: string }>>> = {
  rust: { from: 'rust', to: COPY },
  go: { from: 'go', to: COPY },
  c: { from: 'c', to: '' },
}

/** Files of a library that belong into a project. */
const LIBRARY_FILE = /(^|\/)(Cargo\.toml|go\.mod|[\w-]+\.(rs|go|h))$/
/** Path of a library as examples refer to it. */
const EXAMPLE_LIBRARY = /\.\.\/\.\.\/wasm-sdk\/(?:rust|go)\b/g
/** Folders of an example that are not part of a project. */
const BUILT = /^(build|target|node_modules)\//

/** Compilers that npm installs. */
const COMPILERS: Readonly<Partial<Record<Language, Readonly<Record<string, string>>>>> = {
  assemblyscript: { assemblyscript: '^0.28.20' },
  wat: { binaryen: '^132.0.0' },
}

interface NewProject {
  /** Folder to create; must be empty if it exists. */
  readonly directory: string
  /** Name of the package: lower case, digits, hyphens. */
  readonly name: string
  readonly language: Language
  /** Name of an example to start from, such as `wasm-auth`, instead of the template. Its language must be that of the project. */
  readonly example?: string
  /** Dependency on the gateway, for `package.json`. Default none. */
  readonly gateway?: Readonly<Record<string, string>>
}

type NewProjectResult =
  | { readonly isOk: true; readonly directory: string; readonly files: readonly string[] }
  | { readonly isOk: false; readonly problem: string; readonly next: string }

const NAME = /^[a-z][a-z0-9-]{0,63}$/

/** Overwrites nothing. Invalid requests are part of the result. */
export async function newProject({
  directory,
  name,
  language,
  example,
  gateway = {},
}: NewProject): Promise<NewProjectResult> {
  if (!NAME.test(name)) {
    return failed(`${name} is not a valid package name`, 'use lower-case letters, digits and hyphens')
  }
  const target = resolve(directory)
  if (existsSync(target) && (await readdir(target)).length > 0) {
    return failed(`${target} is not empty`, 'choose a folder that does not exist yet')
  }
  const files = await filesFrom(language, example)
  files.set('package.json', projectManifest(name, language, gateway))
  for (const [path, text] of files) {
    await mkdir(dirname(join(target, path)), { recursive: true })
    await writeFile(join(target, path), text.replaceAll('{{name}}', name))
  }
  return { isOk: true, directory: target, files: [...files.keys()].sort() }
}

/** Names of the examples with their languages. */
export async function moduleExamples(): Promise<ReadonlyMap<string, Language>> {
  const folder = examplesFolder()
  const names = (await readdir(folder)).filter((name) => name.startsWith('wasm-')).sort()
  return new Map(
    names.flatMap((name) => {
      const language = languageOf(join(folder, name))
      return language === null ? [] : [[name, language] as const]
    }),
  )
}

function examplesFolder(): string {
  return join(sdkFolder(), '..', 'examples')
}

/** Texts by path in the project. */
async function filesFrom(language: Language, example: string | undefined): Promise<Map<string, string>> {
  const templates = join(sdkFolder(), 'templates')
  const files = new Map<string, string>()
  const add = async (folder: string, to: (path: string) => string | null) => {
    for (const path of await filesOf(folder)) {
      const place = to(path)
      if (place !== null) files.set(place, await readFile(join(folder, path), 'utf8'))
    }
  }
  const isCase = (path: string) => path.startsWith('cases/')
  const isTemplate = example === undefined
  // npm leaves .gitignore out of packages.
  const named = (path: string) => path.replace(/^(gitignore$|cargo\/)/, '.$1')
  await add(join(templates, 'common'), (path) =>
    isCase(path) && (!isTemplate || language === 'wat') ? null : named(path),
  )
  await add(join(templates, language), named)
  if (!isTemplate) for (const path of [...files.keys()]) if (isSource(path)) files.delete(path)
  const source = example ?? (language === 'wat' ? 'wasm-wat' : null)
  if (source !== null)
    await add(join(examplesFolder(), source), (path) =>
      BUILT.test(path) || (isTemplate && path === 'README.md') ? null : path,
    )
  for (const path of ['Cargo.toml', 'go.mod']) {
    const text = files.get(path)
    if (text !== undefined)
      files.set(path, text.replaceAll(EXAMPLE_LIBRARY, language === 'go' ? `./${COPY}` : COPY))
  }
  const library = LIBRARIES[language]
  if (library !== undefined)
    await add(join(sdkFolder(), library.from), (path) =>
      LIBRARY_FILE.test(path) && !BUILT.test(path) ? join(library.to, path) : null,
    )
  return files
}

/** The `package.json` of a project: its commands, and the packages that they need. */
function projectManifest(
  name: string,
  language: Language,
  gateway: Readonly<Record<string, string>>,
): string {
  const wasi = language === 'go' ? ' --wasi' : ''
  const manifest = {
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: {
      build: 'weir wasm build',
      check: `weir wasm check .${wasi}`,
      test: `weir wasm test .${wasi}`,
    },
    devDependencies: { ...COMPILERS[language], ...gateway },
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

/** Sources of a template, which those of an example replace. */
function isSource(path: string): boolean {
  return /\.(ts|rs|go|c)$/.test(path)
}

/** Paths below a folder, with slashes. */
export async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    )
}

function failed(problem: string, next: string): NewProjectResult {
  return { isOk: false, problem, next }
}
