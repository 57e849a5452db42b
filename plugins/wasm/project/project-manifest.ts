/** The `package.json` of a module project: its commands, and the packages that they need. */
import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import type { Language } from './build-result.ts'

/** Name of the gateway's package. */
const GATEWAY = 'weir-gateway'
const FILE = 'file:'

/** Compilers that npm installs. */
const COMPILERS: Readonly<Partial<Record<Language, Readonly<Record<string, string>>>>> = {
  assemblyscript: { assemblyscript: '^0.28.20' },
  wat: { binaryen: '^132.0.0' },
}

/** @param directory of the project, absolute */
export function projectManifest(directory: string, name: string, language: Language): string {
  const gateway = gatewayDependency(directory)
  const wasi = language === 'go' ? ' --wasi' : ''
  const manifest = {
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: {
      build: 'weir wasm build',
      check: `weir wasm check .${wasi}`,
      test: `weir wasm test .${wasi}`,
    },
    devDependencies: { ...COMPILERS[language], ...(gateway !== null && { [GATEWAY]: gateway }) },
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

/**
 * The version of the gateway that the nearest `package.json` above the project depends on.
 * @returns with the path of a file relative to the project; null if none depends on it
 */
export function gatewayDependency(directory: string): string | null {
  for (let folder = dirname(directory); ; folder = dirname(folder)) {
    const version = dependencyIn(join(folder, 'package.json'))
    if (version?.startsWith(FILE)) {
      const path = relative(directory, resolve(folder, version.slice(FILE.length)))
      return `${FILE}${path.replaceAll('\\', '/')}`
    }
    if (version !== null) return version
    if (dirname(folder) === folder) return null
  }
}

function dependencyIn(file: string): string | null {
  try {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(file, 'utf8'))
    const version: unknown = dependencies?.[GATEWAY] ?? devDependencies?.[GATEWAY]
    return typeof version === 'string' ? version : null
  } catch {
    return null
  }
}
