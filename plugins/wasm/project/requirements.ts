/** What the compilers of each language need on the machine. */
import type { Language } from './build-result.ts'

/** How to install the compiler of a language. */
export const REQUIREMENTS: Readonly<Record<Language, string>> = Object.freeze({
  assemblyscript:
    'run `npm install` in the project, or `npm install --save-dev assemblyscript` in a folder above it',
  rust: 'install Rust from https://rustup.rs, then run `rustup target add wasm32-unknown-unknown`',
  go: 'install Go 1.24 or newer from https://go.dev/dl',
  c: 'install clang with lld, or zig (`pip install ziglang` brings it as python-zig)',
  wat: 'run `npm install` in the project or `npm install --save-dev binaryen` above it, or install wabt',
})
