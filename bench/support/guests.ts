/** Compiles the modules of the wasm scenarios with the guest library of this repository, into a folder that goes away. */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export type GuestName = 'header' | 'body' | 'stream' | 'loop'

export interface Guests {
  /** Folder of the compiled modules; symbolic links resolved. */
  readonly directory: string
  /** @param copy copies differ in a note that does nothing: a gateway takes the same module once only */
  file(name: GuestName, copy?: number): string
  remove(): void
}

/** @throws what the compiler says */
export function compileGuests(names: readonly GuestName[]): Guests {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'weir-bench-guests-')))
  // Authors find the library below node_modules; here that is this repository.
  mkdirSync(join(directory, 'node_modules'))
  symlinkSync(ROOT, join(directory, 'node_modules', 'weir'))
  const compiled = (name: GuestName) => join(directory, `${name}.wasm`)
  for (const name of names) compile(directory, name, compiled(name))
  const file = (name: GuestName, copy = 0) => {
    if (copy === 0) return compiled(name)
    const copied = join(directory, `${name}-${copy}.wasm`)
    writeFileSync(copied, Buffer.concat([readFileSync(compiled(name)), note(`copy-${copy}`)]))
    return copied
  }
  return { directory, file, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

/** A custom section, which has no meaning: id 0, length, name. */
function note(text: string): Buffer {
  return Buffer.from([0, text.length + 1, text.length, ...Buffer.from(text)])
}

function compile(directory: string, name: GuestName, outFile: string): void {
  copyFileSync(new URL(`assembly/${name}.ts`, import.meta.url), join(directory, `${name}.ts`))
  const compiler = join(ROOT, 'node_modules', 'assemblyscript', 'bin', 'asc.js')
  const flags = ['-O3', '--shrinkLevel', '1', '--runtime', 'minimal', '--config', 'none.json']
  const args = [compiler, `${name}.ts`, '--outFile', outFile, ...flags]
  try {
    execFileSync(process.execPath, args, { cwd: directory, stdio: 'pipe' })
  } catch (error) {
    const { stderr, stdout } = error as { stderr?: Buffer; stdout?: Buffer }
    throw new Error(`module ${name} does not compile:\n${stdout ?? ''}${stderr ?? ''}`)
  }
}
