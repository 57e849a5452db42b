/** The scanner that the other architecture tests depend on. */
import { expect, test } from 'vitest'
import { importsOf, scan } from './source-scan.ts'

test('imports are found in every form, and types are distinguished from values', () => {
  const text = [
    "import type { A } from './a.ts'",
    "import { type B, type C } from './b.ts'",
    "import d, { type E } from './d.ts'",
    "export * from './f.ts'",
    "import './g.ts'",
    "const h = await import('./h.ts')",
    'import {\n  i,\n  j,\n} from "./i.ts"',
  ].join('\n')
  const found = importsOf(text).map(({ specifier, isType }) => `${specifier} ${isType ? 'type' : 'value'}`)
  expect(found).toEqual([
    './a.ts type',
    './b.ts type',
    './d.ts value',
    './f.ts value',
    './g.ts value',
    './h.ts value',
    './i.ts value',
  ])
})

test('imports inside comments, strings and templates are not imports', () => {
  const text = [
    "// import x from 'x'",
    "/* import y from 'y' */",
    'const a = "import z from \'z\'"',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text under test is a template
    "const b = `import ${name} from 'q'\nimport r from 'r'`",
  ].join('\n')
  expect(importsOf(text)).toEqual([])
})

test('divisions and regular expressions are distinguished, and the content of a regular expression is skipped', () => {
  const { code, patterns } = scan(
    "const a = b / c / d\nconst e = /['/*]+/.test(f)\nconst g = h[0] / 2 // await",
  )
  expect(patterns).toHaveLength(1)
  expect(code).not.toContain('await')
  expect(code).toContain('.test(f)')
})

test('code inside a template substitution is code', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the text under test is a template
  const { code } = scan('const a = `await ${await b({ c: `${d}` })} await`\nconst e = 1')
  expect(code.match(/await/g)).toHaveLength(1)
  expect(code).toContain('const e = 1')
})
