/** Compiles the modules of the wasm scenarios with the guest library of this repository. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from './process.ts'
import { type RunningWorker, startWorker } from './subject.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export type GuestName = 'header' | 'body' | 'prompt' | 'stream' | 'text' | 'loop'

export interface Guests {
  /** Folder of the compiled modules, without symbolic links. */
  readonly directory: string
  /**
   * @param isFresh the instance is reset before each call, so the module needs no allocator that frees
   * @param copy number of a copy with a different custom section: a gateway accepts the same bytes only once
   */
  file(name: GuestName, isFresh: boolean, copy?: number): string
}

/** Calls `use` with the compiled modules and a running worker. @throws the output of the compiler */
export async function withGuests<T>(
  names: readonly GuestName[],
  progress: (text: string) => void,
  use: (guests: Guests, worker: RunningWorker) => Promise<T>,
): Promise<T> {
  progress('compiling modules')
  const guests = compileGuests(names)
  const worker = await startWorker()
  try {
    return await use(guests, worker)
  } finally {
    await worker.child.stop()
  }
}

export function compileGuests(names: readonly GuestName[]): Guests {
  const directory = temporaryDirectory()
  // Modules import the library from node_modules; here that is this repository.
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
  return { directory, file }
}

/** A custom section: id 0, length, name. */
function note(text: string): Buffer {
  return Buffer.from([0, text.length + 1, text.length, ...Buffer.from(text)])
}

/** Uses the runtime that `weir wasm build` selects for such a module. */
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
