/** `weir wasm new`: creates a project. */
import { relative, resolve } from 'node:path'
import { gatewayDependency } from '../../cli/gateway-dependency.ts'
import { CliError } from '../../cli/output.ts'
import { type Language, REQUIREMENTS } from '../project/build-result.ts'
import { moduleExamples, newProject } from '../project/new-project.ts'
import { readAttachPoints } from './arguments.ts'

interface NewOptions {
  readonly lang?: Language
  readonly attach?: string
  readonly example?: string
  readonly dir?: string
}

export async function makeProject(name: string, options: NewOptions): Promise<void> {
  const { attach, example, dir } = options
  const lang = example === undefined ? (options.lang ?? 'assemblyscript') : await languageOfExample(example)
  const points = readAttachPoints(attach) ?? ['OnRequest']
  const isFirstOnly = points.length === 1 && points[0] === 'OnRequest'
  if (example !== undefined && (attach ?? options.lang) !== undefined)
    throw new CliError('--example has its own language and handlers; omit --lang and --attach')
  if (!isFirstOnly && lang === 'wat')
    throw new CliError(
      'the template for wat has a handler for OnRequest only\n  omit --attach and add the exports described in wasm-sdk/ABI.md',
    )
  const gateway = gatewayDependency(resolve(dir ?? name))
  const made = await newProject({ directory: dir ?? name, name, language: lang, example, gateway })
  if (!made.isOk) throw new CliError(`${made.problem}\n  ${made.next}`)
  const { directory } = made
  const files = [...made.files]
  if (!isFirstOnly && lang !== 'wat') {
    const { addHandlers } = await import('../project/add-handlers.ts')
    files.splice(0, files.length, ...(await addHandlers(directory, lang, points)))
  }
  const place = relative('.', directory) || '.'
  const wasi = lang === 'go' ? ' --wasi' : ''
  console.log(`created ${name} in ${directory}:`)
  for (const file of files) console.log(`  ${file}`)
  console.log(`
compiler, if it is missing: ${REQUIREMENTS[lang]}
next:
  weir wasm build ${place}
  weir wasm check ${place}${wasi}
  weir wasm test ${place}${wasi}
  weir wasm add ${place}${wasi}          with a running gateway${lang === 'go' ? ', which needs plugins.wasm.allowWasi' : ''}`)
}

async function languageOfExample(name: string): Promise<Language> {
  const examples = await moduleExamples()
  const language = examples.get(name)
  if (language !== undefined) return language
  throw new CliError(`--example must be one of ${[...examples.keys()].join(', ')} (got ${name})`)
}
