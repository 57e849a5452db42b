/** Adds the requested handlers to a new project, each with a file and a case. */
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AttachPoint, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import { type LibraryLanguage, sdkFolder } from './build-result.ts'
import { filesOf } from './new-project.ts'

interface Form {
  /** Folder of the sources in a project; empty for the project itself. */
  readonly folder: string
  /** Folder of the templates. */
  readonly templates: string
  readonly extension: string
  readonly entry: string
  /** Entry of a project without the template's handler. */
  readonly bareEntry: string
  /** Line of the entry that includes a handler; empty if the compiler reads every file. */
  include(exportName: string): string
}

const FORMS: Readonly<Record<LibraryLanguage, Form>> = {
  assemblyscript: {
    folder: 'assembly',
    templates: 'assembly',
    extension: 'ts',
    entry: 'index.ts',
    bareEntry: `/** What the module needs, and its handlers. */
import { Description } from 'weir-gateway/wasm-sdk/assembly'

export function describe(): i32 {
  return new Description().needsHeaders([]).reusesInstance().send()
}
`,
    include: (name) => `export { ${name} } from './${name}'`,
  },
  rust: {
    folder: 'src',
    templates: 'rust',
    extension: 'rs',
    entry: 'lib.rs',
    bareEntry: `//! What the module needs, and its handlers.

use weir_sdk::Description;

weir_sdk::describe!(Description::new().needs_headers(&[]).reuses_instance());
`,
    include: (name) => `mod ${name};\nweir_sdk::${name}!(${name}::handle);`,
  },
  go: {
    folder: '',
    templates: 'go',
    extension: 'go',
    entry: 'main.go',
    bareEntry: `// Package main declares what the module needs; each file on_*.go has a handler.
package main

import weir "weir-gateway/wasm-sdk/go"

//go:wasmexport describe
func describe() int32 {
	return weir.Describe(weir.Description{})
}

// main is never called: the gateway calls the exports.
func main() {}
`,
    include: () => '',
  },
  c: {
    folder: '',
    templates: 'c',
    extension: 'c',
    entry: 'module.c',
    bareEntry: `/* What the module needs, and its handlers. */
#include "weir_head.h"

WEIR_EXPORT(describe) {
  weir_describe("{\\"abi\\":1,\\"needs\\":{\\"headers\\":[],\\"response_headers\\":false}}");
  return 0;
}
`,
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
  const templates = join(sdkFolder(), 'templates', 'handlers')
  const entry = join(directory, form.folder, form.entry)
  if (!points.includes(FIRST)) {
    await writeFile(entry, form.bareEntry)
    await rm(join(directory, 'cases'), { recursive: true })
  }
  await mkdir(join(directory, 'cases'), { recursive: true })
  const names = points.filter((point) => point !== FIRST).map((point) => EXPORT_OF_ATTACH_POINT[point])
  for (const name of names) {
    const file = `${name}.${form.extension}`
    await copyFile(join(templates, form.templates, file), join(directory, form.folder, file))
    await copyFile(join(templates, 'cases', `${name}.json`), join(directory, 'cases', `${name}.json`))
  }
  const includes = names.map(form.include).join('\n').trim()
  if (includes !== '') await writeFile(entry, `${await readFile(entry, 'utf8')}\n${includes}\n`)
  return (await filesOf(directory)).sort()
}
