/** `weir wasm new`: creates a project. */
import { relative } from 'node:path'
import { CliError } from '../../cli/cli-error.ts'
import type { Language } from '../project/build-result.ts'
import { newProject } from '../project/new-project.ts'
import { readAttachPoints } from './arguments.ts'

interface NewOptions {
  readonly lang: Language
  readonly attach?: string
  readonly dir?: string
}

export async function makeProject(name: string, { lang, attach, dir }: NewOptions): Promise<void> {
  const points = readAttachPoints(attach) ?? ['OnRequest']
  const isFirstOnly = points.length === 1 && points[0] === 'OnRequest'
  const library = lang === 'assemblyscript' || lang === 'rust' ? lang : null
  if (!isFirstOnly && library === null)
    throw new CliError(
      `the template for ${lang} has a handler for OnRequest only\n  omit --attach and add the exports described in wasm-sdk/ABI.md`,
    )
  const made = await newProject({ directory: dir ?? name, name, language: lang })
  if (!made.isOk) throw new CliError(`${made.problem}\n  ${made.next}`)
  const { directory } = made
  const files = [...made.files]
  if (!isFirstOnly && library !== null) {
    const { addHandlers } = await import('./handlers.ts')
    files.splice(0, files.length, ...(await addHandlers(directory, library, points)))
  }
  const place = relative('.', directory) || '.'
  console.log(`created ${name} in ${directory}:`)
  for (const file of files) console.log(`  ${file}`)
  console.log(`
next:
  weir wasm build ${place}
  weir wasm test ${place}${lang === 'go' ? ' --wasi' : ''}
  weir wasm add ${place}          with a running gateway${lang === 'go' ? '; requires --wasi and plugins.wasm.allowWasi' : ''}`)
}
