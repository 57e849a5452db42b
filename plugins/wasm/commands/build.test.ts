/** Parsing of AssemblyScript compiler errors, as printed by version 0.28. */
import { expect, test } from 'vitest'
import { readCompilerErrors } from './build.ts'

const OUTPUT = `ERROR TS2322: Type '~lib/string/String' is not assignable to type 'i32'.
   :
 3 │ const unused: i32 = "text"
   │                     ~~~~~~
   └─ in assembly/index.ts(3,23)

WARNING AS201: Conversion from type 'i64' to 'i32' will require an explicit cast when switching between 32/64-bit.
   :
 9 │ return value
   │        ~~~~~
   └─ in assembly/other.ts(9,10)

ERROR TS2554: Expected 1 arguments, but got 0.
     :
 120 │ take()
     │ ~~~~~~
     └─ in ~lib/weir-gateway/wasm-sdk/assembly/json.ts(120,3)

FAILURE 2 compile error(s)`

test('each error has a location in editor format, and its source lines', () => {
  const found = readCompilerErrors(OUTPUT, 'my-module')
  expect(found.map(({ file, line, column, level }) => [file, line, column, level])).toEqual([
    ['my-module/assembly/index.ts', 3, 23, 'error'],
    ['my-module/assembly/other.ts', 9, 10, 'warning'],
    ['~lib/weir-gateway/wasm-sdk/assembly/json.ts', 120, 3, 'error'],
  ])
  expect(found[0].message).toBe("TS2322: Type '~lib/string/String' is not assignable to type 'i32'.")
  expect(found[0].text.split('\n')).toEqual([
    "my-module/assembly/index.ts:3:23: error TS2322: Type '~lib/string/String' is not assignable to type 'i32'.",
    '   3 │ const unused: i32 = "text"',
    '     │                     ~~~~~~',
  ])
})

test('colours are ignored', () => {
  const coloured = OUTPUT.replaceAll(/(ERROR|WARNING|FAILURE)/g, '\u001b[91m$1\u001b[0m').replaceAll(
    /(~~+)/g,
    '\u001b[91m$1\u001b[0m',
  )
  expect(readCompilerErrors(coloured, 'my-module')).toEqual(readCompilerErrors(OUTPUT, 'my-module'))
})

test.each(['', 'error[E0425]: cannot find value `x`\n --> src/lib.rs:3:5', 'ERROR: no place'])(
  'other output has no findings and is shown unchanged: %j',
  (output) => expect(readCompilerErrors(output, '')).toEqual([]),
)
