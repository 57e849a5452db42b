/** What a module in AssemblyScript says of itself, in every word that the library has for it. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildModule } from '../plugins/wasm/project/build.ts'
import { newProject } from '../plugins/wasm/project/new-project.ts'
import { ModuleRunner } from '../plugins/wasm/testing/runner.ts'

const handler = `
export function on_request(): i32 {
  return handleRequest((_request: Request): Action => Action.pass())
}
`

const COLLECTOR = Buffer.from('~lib/rt/tcms.ts', 'utf16le')

test.each([
  ['', { needs: {}, instance: 'fresh', on_failure: 'open' }],
  ['.reusesInstance().failsClosed()', { needs: {}, instance: 'reuse', on_failure: 'closed' }],
  ['.sharesInstance().needsNoClientIp()', { needs: { client_ip: false }, instance: 'shared' }],
  [
    ".needsHeaders([]).needsCredentials().needsRequestBody().needsResponseHeaders(['X-Team']).needsResponseBody()",
    {
      needs: {
        headers: false,
        credentials: true,
        request_body: true,
        response_headers: ['x-team'],
        response_body: true,
      },
    },
  ],
])('new Description()%s', async (words, said) => {
  const directory = await mkdtemp(join(tmpdir(), 'weir-description-'))
  try {
    await newProject({ directory, name: 'says', language: 'assemblyscript' })
    const describe = `export function describe(): i32 { return new Description()${words}.send() }\n`
    const imports =
      "import { Action, Description, handleRequest, Request } from 'weir-gateway/wasm-sdk/assembly'\n"
    await writeFile(join(directory, 'assembly', 'index.ts'), imports + describe + handler)
    const built = await buildModule({ directory })
    if (!built.isOk) throw new Error(built.output)
    const bytes = await readFile(built.file)
    const runner = await ModuleRunner.open({ bytes })
    try {
      expect(runner.description).toMatchObject(said)
      // Only instances that are kept have something to free; the runtime that does it has its file's name in its data.
      expect(bytes.includes(COLLECTOR)).toBe(runner.description.instance !== 'fresh')
    } finally {
      await runner.close()
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
