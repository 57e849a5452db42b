/** What a module in Rust says of itself, and what its log says of a panic. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildModule } from '../plugins/wasm/project/build.ts'
import { newProject } from '../plugins/wasm/project/new-project.ts'
import { toInput } from '../plugins/wasm/testing/case-input.ts'
import { ModuleRunner } from '../plugins/wasm/testing/runner.ts'
import { isThorough } from '../test/support/thorough.ts'
import { BUILD_LIMIT_MS, reasonToSkip } from './fixtures/built-modules.ts'

const SOURCE = `use weir_sdk::{Action, Description, Request, Result};
weir_sdk::describe!(Description::new().shares_instance()); weir_sdk::on_request!(handle);
fn handle(request: &Request) -> Result<Action> {
    let none: Option<&str> = None;
    if request.path() == "/unwrap" {
        none.unwrap();
    }
    panic!("größe {}", 7)
}
`

test.runIf(isThorough)(
  'instances are shared where the module says so; a panic fails the call, and text and line are in the log',
  async ({ skip }) => {
    const directory = await mkdtemp(join(tmpdir(), 'weir-panic-'))
    try {
      await newProject({ directory, name: 'panics', language: 'rust' })
      await writeFile(join(directory, 'src', 'lib.rs'), SOURCE)
      const built = await buildModule({ directory })
      if (!built.isOk) {
        const reason = reasonToSkip(built)
        if (reason === null) throw new Error(built.output)
        console.warn(`skipped: ${reason}`)
        return skip(reason)
      }
      const runner = await ModuleRunner.open({ bytes: await readFile(built.file) })
      expect(runner.description.instance).toBe('shared')
      for (const [path, line, text] of [
        ['/', 8, 'größe 7'],
        ['/unwrap', 6, 'called `Option::unwrap()` on a `None` value'],
      ] as const) {
        const { head } = toInput({ on: 'OnRequest', request: { path }, expect: {} }, {}, 0)
        const { outcome, logs } = await runner.call('OnRequest', head)
        expect([outcome, logs]).toEqual(['failed', [{ level: 'error', text: expect.any(String) }]])
        expect(logs[0].text).toMatch(new RegExp(`src/lib\\.rs:${line}:`))
        expect(logs[0].text).toContain(text)
      }
      await runner.close()
    } finally {
      await rm(directory, { recursive: true })
    }
  },
  BUILD_LIMIT_MS,
)
