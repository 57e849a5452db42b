/** Every import of the repository's sources, and the module that each file belongs to. */
import { posix } from 'node:path'
import { importsOf, readSource, sourceFiles } from './source-scan.ts'

export interface Arrow {
  readonly from: string
  /** Path of a source file, or the name of a package. */
  readonly to: string
  readonly isType: boolean
  readonly line: number
}

export const arrows: readonly Arrow[] = sourceFiles(
  ['{kernel,plugins,proto,wasm-sdk,bench,test,examples}/**/*.{ts,mjs}'],
  {
    tests: true,
  },
).flatMap((from) =>
  importsOf(readSource(from)).map(({ specifier, isType, line }) => {
    const to = specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : specifier
    return { from, to, isType, line }
  }),
)

export const isTest = (file: string) => file.endsWith('.test.ts') || file.includes('/fixtures/')
/** Repository files have a folder and an extension; packages with file-like entry names begin with `@`. */
export const isPackage = (to: string) =>
  to.startsWith('@') || (/^[a-zA-Z]/.test(to) && !/\/.*\.(tsx?|mjs|js)$/.test(to))
/** Folders that contain several plugins. */
const GROUPS = /^plugins\/(access|models|operations|protocols|routing|state|tools|workers)\//
export const moduleOf = (file: string) =>
  file
    .split('/')
    .slice(0, GROUPS.test(file) ? 3 : 2)
    .join('/')
