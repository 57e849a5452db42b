/** A new project builds, passes the check and does what its case says, before anybody has changed a line. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { gatewayDependency } from '../plugins/cli/gateway-dependency.ts'
import { addHandlers } from '../plugins/wasm/project/add-handlers.ts'
import { buildModule } from '../plugins/wasm/project/build.ts'
import { LANGUAGES, type LibraryLanguage } from '../plugins/wasm/project/build-result.ts'
import { newProject } from '../plugins/wasm/project/new-project.ts'
import { checkModule } from '../plugins/wasm/testing/conformance.ts'
import { readCases, runCase } from '../plugins/wasm/testing/run-cases.ts'
import { isThorough } from '../test/support/thorough.ts'
import { ATTACH_POINTS } from './abi.ts'
import { BUILD_LIMIT_MS, reasonToSkip } from './fixtures/built-modules.ts'

/** Of the gateway: what a new project is made from. */
const ROOT = fileURLToPath(new URL('..', import.meta.url))

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-new-'))
})
afterEach(() => rm(folder, { recursive: true }))

/** The others take minutes to compile. */
const QUICK_LANGUAGES = ['assemblyscript', 'wat'] as const

describe.each(isThorough ? LANGUAGES : QUICK_LANGUAGES)('in %s', (language) => {
  test(
    'works as it is',
    async ({ skip }) => {
      const directory = join(folder, 'my-module')
      const made = await newProject({ directory, name: 'my-module', language })
      expect(made).toMatchObject({ isOk: true, files: expect.arrayContaining(['.gitignore', 'README.md']) })
      expect(await filesNaming(ROOT, directory)).toEqual([])
      const built = await buildModule({ directory })
      if (!built.isOk) {
        const reason = reasonToSkip(built)
        if (reason === null) throw new Error(`${built.problem}\n${built.output}`)
        console.warn(`skipped: ${reason}`)
        return skip(reason)
      }
      expect(built.file).toBe(join(directory, 'build', 'module.wasm'))
      const bytes = Uint8Array.from(await readFile(built.file))
      const isGo = language === 'go'
      const { findings, module } = await checkModule(bytes, { usesWasi: isGo })
      // Its runtime is in the module.
      expect(findings.map(({ code }) => code)).toEqual(isGo ? ['large_module'] : [])
      // 17 with the stack that the compiler reserves by itself.
      if (language === 'rust') expect(module.memories[0].minPages).toBeLessThanOrEqual(4)
      await expectCases(directory, bytes, isGo)
    },
    BUILD_LIMIT_MS,
  )

  test.skipIf(language === 'wat')(
    'has a handler for each attach point that does what its case says',
    async ({ skip }) => {
      const directory = join(folder, 'all-points')
      await newProject({ directory, name: 'all-points', language })
      await addHandlers(directory, language as LibraryLanguage, ATTACH_POINTS)
      const built = await buildModule({ directory })
      if (!built.isOk) {
        const reason = reasonToSkip(built)
        if (reason === null) throw new Error(`${built.problem}\n${built.output}`)
        console.warn(`skipped: ${reason}`)
        return skip(reason)
      }
      await expectCases(directory, Uint8Array.from(await readFile(built.file)), language === 'go')
    },
    BUILD_LIMIT_MS,
  )
})

async function expectCases(directory: string, bytes: Uint8Array, usesWasi: boolean): Promise<void> {
  for (const { file, moduleCase } of await readCases(join(directory, 'cases'))) {
    const { steps } = await runCase(moduleCase, { bytes, usesWasi })
    expect(
      steps.flatMap(({ differences }) => differences),
      file,
    ).toEqual([])
  }
}

/** Files that hold the path: they would work on one machine only. */
async function filesNaming(path: string, directory: string): Promise<string[]> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = names.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
  const texts = await Promise.all(files.map(async (file) => [file, await readFile(file, 'utf8')]))
  return texts.filter(([, text]) => text.includes(path)).map(([file]) => relative(directory, file))
}

test(
  'an editor finds the types of the library and of the language where the packages are installed',
  async () => {
    const directory = join(folder, 'typed')
    await newProject({ directory, name: 'typed', language: 'assemblyscript' })
    await mkdir(join(folder, 'node_modules'))
    await symlink(ROOT, join(folder, 'node_modules', 'weir-gateway'))
    await symlink(
      join(ROOT, 'node_modules', 'assemblyscript'),
      join(folder, 'node_modules', 'assemblyscript'),
    )
    expect(await ownProblems(directory)).toEqual([])
    const wrong =
      "import { Action } from 'weir-gateway/wasm-sdk/assembly'\nexport const a: Action = Action.reject('x')\n"
    await writeFile(join(directory, 'assembly', 'wrong.ts'), wrong)
    expect(await ownProblems(directory)).toEqual([expect.stringMatching(/^wrong\.ts\(2,\d+\): error TS2345/)])
  },
  BUILD_LIMIT_MS,
)

/** What the compiler that editors ask says about the sources of the project, those of the library left out. */
async function ownProblems(directory: string): Promise<string[]> {
  const compiler = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url))
  const cwd = join(directory, 'assembly')
  const said = await new Promise<string>((resolve) => {
    execFile(process.execPath, [compiler, '--noEmit', '-p', '.'], { cwd }, (_, out, err) =>
      resolve(out + err),
    )
  })
  return said.split('\n').filter((line) => line !== '' && !/^( |\.\.\/)/.test(line))
}

describe('package.json of a project', () => {
  const dependenciesIn = async (above: object) => {
    await writeFile(join(folder, 'package.json'), JSON.stringify(above))
    const directory = join(folder, 'modules', 'm')
    const gateway = gatewayDependency(directory)
    await newProject({ directory, name: 'm', language: 'assemblyscript', gateway })
    return JSON.parse(await readFile(join(directory, 'package.json'), 'utf8')).devDependencies
  }

  test('depends on the gateway as the package above does; paths are relative to the project', async () => {
    const file = { dependencies: { 'weir-gateway': 'file:weir-gateway-0.1.0.tgz' } }
    expect(await dependenciesIn(file)).toMatchObject({ 'weir-gateway': 'file:../../weir-gateway-0.1.0.tgz' })
  })

  test('takes a version as it is, and has none if no package above depends on the gateway', async () => {
    expect(await dependenciesIn({ devDependencies: { 'weir-gateway': '^1.2.3' } })).toMatchObject({
      'weir-gateway': '^1.2.3',
    })
    await rm(join(folder, 'modules'), { recursive: true })
    expect(await dependenciesIn({})).toEqual({ assemblyscript: expect.any(String) })
  })
})

test('an example becomes a project of its own', async () => {
  const directory = join(folder, 'keys')
  const made = await newProject({ directory, name: 'keys', language: 'assemblyscript', example: 'wasm-auth' })
  expect(made).toMatchObject({
    isOk: true,
    files: expect.arrayContaining([
      'assembly/jwt.ts',
      'assembly/tsconfig.json',
      'cases/tokens.json',
      'package.json',
    ]),
  })
  expect(await filesNaming('../../', directory)).toEqual([])
})

test('nothing is written over', async () => {
  await writeFile(join(folder, 'mine.txt'), 'mine')
  const made = await newProject({ directory: folder, name: 'x', language: 'rust' })
  expect(made).toEqual({
    isOk: false,
    problem: `${folder} is not empty`,
    next: 'choose a folder that does not exist yet',
  })
})

test.each(['', 'Upper', '../up', '1st', 'a b'])('%j is not a valid package name', async (name) => {
  const made = await newProject({ directory: join(folder, 'x'), name, language: 'assemblyscript' })
  expect(made).toMatchObject({ isOk: false, problem: `${name} is not a valid package name` })
})

describe('a build that fails', () => {
  const build = () => buildModule({ directory: folder })

  test('says that a folder holds no project', async () => {
    expect(await build()).toMatchObject({ isOk: false, problem: `${folder} is not a module project` })
  })

  test(
    'shows what the compiler says, with file and line',
    async () => {
      await newProject({ directory: join(folder, 'm'), name: 'm', language: 'assemblyscript' })
      await writeFile(
        join(folder, 'm', 'assembly', 'index.ts'),
        'export function on_request(): i32 { return nothing }',
      )
      const built = await buildModule({ directory: join(folder, 'm') })
      expect(built).toMatchObject({ isOk: false, problem: '1 compile error(s)' })
      expect('output' in built && built.output).toMatch(/nothing[\s\S]*assembly\/index\.ts\(1,/)
    },
    BUILD_LIMIT_MS,
  )

  test('names a runtime that there is not', async () => {
    await newProject({ directory: join(folder, 'm'), name: 'm', language: 'assemblyscript' })
    await writeFile(join(folder, 'm', 'package.json'), '{"weir":{"runtime":"fast"}}')
    expect(await buildModule({ directory: join(folder, 'm') })).toMatchObject({
      isOk: false,
      next: 'use one of auto, stub, minimal, incremental',
    })
  })
})
