/** The `package.json` of a module project: its commands, and the packages that they need. */
import type { Language } from './build-result.ts'

/** Compilers that npm installs. */
const COMPILERS: Readonly<Partial<Record<Language, Readonly<Record<string, string>>>>> = {
  assemblyscript: { assemblyscript: '^0.28.20' },
  wat: { binaryen: '^132.0.0' },
}

/** @param gateway dependency on the gateway, see `NewProject` */
export function projectManifest(
  name: string,
  language: Language,
  gateway: Readonly<Record<string, string>>,
): string {
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
    devDependencies: { ...COMPILERS[language], ...gateway },
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}
