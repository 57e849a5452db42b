/**
 * The Extism host SDK, loaded without the warning of Node's experimental WASI, which it imports. Guests use the functions of
 * `wasi-functions.ts` instead.
 */
const { emitWarning } = process

function withoutWasi(warning: string | Error, ...rest: unknown[]): void {
  if (String(warning).startsWith('WASI is an experimental feature')) return
  Reflect.apply(emitWarning, process, [warning, ...rest])
}

process.emitWarning = withoutWasi as typeof process.emitWarning
export const { createPlugin } = await import('@extism/extism')
process.emitWarning = emitWarning
