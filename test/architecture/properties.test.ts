/** Property tests: what they hold is said by assertions, not by what they give back. */
import { expect, test } from 'vitest'
import { lineOf, readSource, scan, sourceFiles } from './source-scan.ts'

const files = sourceFiles(['{kernel,plugins,proto,wasm-sdk,bench,test}/**/*.test.ts'], { tests: true }).map(
  (file) => ({ file, code: scan(readSource(file)).code }),
)

const CALL = /\bfc\.(?:asyncProperty|property)\(/g
/** `expect(...)` in expressions gives an object or nothing, which a property takes for a failure or for none by chance. */
const RETURNED = /(?:\breturn[ \t]+|=>\s*)(?:await\s+)?expect\b/g

/** From the bracket of the call to the one that closes it. */
function argumentsOf(code: string, openAt: number): string {
  let depth = 0
  for (let at = openAt; at < code.length; at++) {
    if (code[at] === '(') depth++
    else if (code[at] === ')' && --depth === 0) return code.slice(openAt, at)
  }
  return code.slice(openAt)
}

function returnedIn(code: string): number[] {
  return [...code.matchAll(CALL)].flatMap(({ index, 0: call }) => {
    const openAt = index + call.length - 1
    return [...argumentsOf(code, openAt).matchAll(RETURNED)].map((found) => openAt + found.index)
  })
}

test('no property gives back an assertion', () => {
  const found = files.flatMap(({ file, code }) =>
    returnedIn(code).map((at) => `${file}:${lineOf(code, at)} gives back an assertion: use a block`),
  )
  expect(found).toEqual([])
})

test('both forms of it are found, and assertions in blocks are not', () => {
  const bad = [
    'fc.assert(fc.property(fc.nat(), (n) => expect(n).toBe(n)))',
    'fc.asyncProperty(fc.nat(), async (n) => { return expect(n).toBe(n) })',
    'fc.asyncProperty(fc.nat(), (n) =>\n  await expect(n).resolves.toBe(n))',
  ]
  for (const code of bad) expect(returnedIn(code)).toHaveLength(1)
  expect(
    returnedIn('fc.property(fc.nat(), (n) => { expect(n).toBe(n) }); const f = () => expect(1)'),
  ).toEqual([])
})
