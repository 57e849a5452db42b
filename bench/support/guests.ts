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
  /**
   * @param isFresh each call finds the instance as it was made, so that nothing has to be freed
   * @param copy copies differ in a note that does nothing: a gateway takes the same module once only
   */
  file(name: GuestName, isFresh: boolean, copy?: number): string
  remove(): void
}

/** @throws what the compiler says */
export function compileGuests(names: readonly GuestName[]): Guests {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'weir-bench-guests-')))
  // Authors find the library below node_modules; here that is this repository.
  mkdirSync(join(directory, 'node_modules'))
  symlinkSync(ROOT, join(directory, 'node_modules', 'weir-gateway'))
  const compiled = (name: GuestName, isFresh: boolean) =>
    join(directory, `${name}-${isFresh ? 'fresh' : 'kept'}.wasm`)
  for (const name of names)
    for (const isFresh of [true, false]) compile(directory, name, isFresh, compiled(name, isFresh))
  const file = (name: GuestName, isFresh: boolean, copy = 0) => {
    const original = compiled(name, isFresh)
    if (copy === 0) return original
    const copied = original.replace(/\.wasm$/, `-${copy}.wasm`)
    writeFileSync(copied, Buffer.concat([readFileSync(original), note(`copy-${copy}`)]))
    return copied
  }
  return { directory, file, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

/** A custom section, which has no meaning: id 0, length, name. */
function note(text: string): Buffer {
  return Buffer.from([0, text.length + 1, text.length, ...Buffer.from(text)])
}

/** With the runtime that `weir wasm build` takes for such a module. */
function compile(directory: string, name: GuestName, isFresh: boolean, outFile: string): void {
  copyFileSync(new URL(`assembly/${name}.ts`, import.meta.url), join(directory, `${name}.ts`))
  const compiler = join(ROOT, 'node_modules', 'assemblyscript', 'bin', 'asc.js')
  const flags = ['-O3', '--runtime', isFresh ? 'stub' : 'minimal', '--config', 'none.json']
  const args = [compiler, `${name}.ts`, '--outFile', outFile, ...flags]
  try {
    execFileSync(process.execPath, args, { cwd: directory, stdio: 'pipe' })
  } catch (error) {
    const { stderr, stdout } = error as { stderr?: Buffer; stdout?: Buffer }
    throw new Error(`module ${name} does not compile:\n${stdout ?? ''}${stderr ?? ''}`)
  }
}
