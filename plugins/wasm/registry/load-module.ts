/** Loads a module from its descriptor: reads, checks, rewrites, compiles and starts it once. On control only. */
import { createHash } from 'node:crypto'
import { isAbsolute } from 'node:path'
import { FileError, readRootedFile } from '#shared'
import { type AttachPoint, DESCRIBE_EXPORT, type ModuleNeeds } from '../../../wasm-sdk/abi.ts'
import { type Settings, settingProblem } from '../../../wasm-sdk/settings.ts'
import type { WasmConfig } from '../config.ts'
import type { OutgoingHttp } from '../fetch/outgoing-http.ts'
import { matchProblems } from '../hooks/active-modules.ts'
import { buildGuest, compileModule, startFuel } from '../instances/build-guest.ts'
import { exportsFunction, INITIALIZE_EXPORT, moduleProblems } from '../instances/check-module.ts'
import { type ModuleParts, readParts, readSections, SECTION } from '../rewrite/module-parts.ts'
import { BadModule, ModuleRejected } from '../rewrite/module-rejected.ts'
import type { GuestPool } from '../threads/guest-pool.ts'
import type { LoadedModule, Matcher } from '../threads/guest-task.ts'
import { INLINE_START, inlineStartFuel, isPicker, mayRunHere } from '../threads/placements.ts'
import type { ModuleDescriptor } from '../wire.ts'
import { type Description, readDescription } from './description.ts'

const MAX_NAME_LENGTH = 128

export interface ModuleFile {
  /** The configuration file names the path. */
  readonly isConfigured: boolean
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Of the bytes, SHA-256, hexadecimal. */
  readonly hash: string
}

/**
 * @param isConfigured the configuration file names the path, which may lie outside the roots
 * @throws ModuleRejected
 */
export function readModule(
  { file_path, sha256 }: Pick<ModuleDescriptor, 'file_path' | 'sha256'>,
  isConfigured: boolean,
  config: WasmConfig,
): ModuleFile {
  const file = toModuleFile(readFile(file_path, isConfigured ? null : config.roots, config), isConfigured)
  if (sha256 !== undefined && file.hash !== sha256)
    throw new ModuleRejected(
      `file_path has the SHA-256 ${file.hash} in place of ${sha256}, as sha256 requires`,
    )
  return file
}

/** @throws ModuleRejected */
export function checkName({ name }: Pick<ModuleDescriptor, 'name'>): void {
  if (name.trim() === '') throw new ModuleRejected('the name must not be empty')
  if (name.length > MAX_NAME_LENGTH)
    throw new ModuleRejected(`the name has more than ${MAX_NAME_LENGTH} characters`)
}

export function toModuleFile(bytes: Uint8Array<ArrayBuffer>, isConfigured: boolean): ModuleFile {
  return { isConfigured, bytes, hash: createHash('sha256').update(bytes).digest('hex') }
}

/** Reads the bytes once: what is checked is what runs. */
function readFile(
  path: string,
  roots: readonly string[] | null,
  { maxFileBytes }: WasmConfig,
): Uint8Array<ArrayBuffer> {
  if (!isAbsolute(path)) throw new ModuleRejected('file_path must be absolute')
  const rules = { roots, rootsSetting: 'plugins.wasm.roots', extensions: ['.wasm'], maxBytes: maxFileBytes }
  try {
    const bytes = readRootedFile(path, rules)
    if (bytes.length === 0) throw new FileError(`${path} is empty`)
    return bytes
  } catch (error) {
    if (error instanceof FileError) throw new ModuleRejected(`file_path ${error.message}`, error)
    throw error
  }
}

export type Ready = Omit<LoadedModule, 'row'>

export interface LoadParts {
  /** Runs the trial start. */
  readonly pool: Pick<GuestPool, 'run'>
  readonly http: Pick<OutgoingHttp, 'problemOf'>
  /** Other instances of the module, whose compiled code is used too. Default none. */
  readonly compiled?: readonly LoadedModule[]
  /** The settings are not known yet, as in a check by an author. Default false. */
  readonly hasNoSettings?: boolean
}

/** @throws ModuleRejected */
export async function loadModule(
  uuid: string,
  descriptor: ModuleDescriptor,
  { bytes }: ModuleFile,
  config: WasmConfig,
  { pool, http, compiled = [], hasNoSettings = false }: LoadParts,
): Promise<Ready> {
  const usesWasi = descriptor.wasi === true
  const { allowed_hosts: allowedHosts = [] } = descriptor
  const unlisted = http.problemOf(allowedHosts)
  if (unlisted !== null) throw new ModuleRejected(unlisted)
  const attachPoints = [...new Set(descriptor.attach_points.map(({ Middleware }) => Middleware))]
  if (attachPoints.length === 0) throw new ModuleRejected('attach_points must name at least one attach point')
  for (const { member, text } of matchProblems(descriptor))
    throw new ModuleRejected(`match.${member} ${text}`)
  const build = (instance: LoadedModule['instance'], units: number) =>
    compiled.find((one) => one.startFuel === units && isRestored(one) === isRestored({ instance })) ??
    buildGuest(bytes, instance, config, units)
  const parts = await checkModule(bytes, attachPoints, usesWasi, config, compiled.length > 0)
  const { module, layout } = await build('fresh', startFuel(config))
  const fuel = descriptor.fuel ?? config.fuel
  const trial: Ready = {
    uuid,
    name: descriptor.name,
    module,
    layout,
    attachPoints,
    needs: needsOf({}),
    instance: 'fresh',
    onFailure: 'open',
    timeoutMs: descriptor.timeout_ms ?? config.timeoutMs,
    fuel,
    fuelPerByte: config.fuelPerByte,
    startFuel: startFuel(config),
    burntAtStart: 0,
    placement: descriptor.placement ?? config.placement,
    config: descriptor.config ?? {},
    settings: null,
    usesWasi,
    match: matcherOf(descriptor),
    allowedHosts,
    seesRefused: descriptor.on === 'refused',
    hasStart: parts.sections.has(SECTION.start) || exportsFunction(parts, INITIALIZE_EXPORT),
    stored: null,
  }
  const { description, burntAtStart } = await tryModule(trial, exportsFunction(parts, DESCRIBE_EXPORT), pool)
  const inlineStart = inlineStartFuel(config.inline.fuel)
  if (isPicker(trial) && burntAtStart > inlineStart)
    throw new ModuleRejected(
      `the start of the module uses ${burntAtStart} units of fuel; OnPick allows ${inlineStart} (${INLINE_START} times plugins.wasm.inline.fuel)`,
    )
  const settings = descriptor.settings ?? description.settings ?? null
  if (!hasNoSettings) checkSettings(settings, trial.config)
  const instance = descriptor.instance ?? description.instance ?? 'fresh'
  const startUnits = unitsOfStart(trial, burntAtStart, config)
  const isAsTried = isRestored({ instance }) && startUnits === trial.startFuel
  const built = isAsTried ? trial : await build(instance, startUnits)
  return {
    ...trial,
    burntAtStart,
    settings,
    startFuel: startUnits,
    module: built.module,
    layout: built.layout,
    needs: needsOf({ ...description.needs, ...descriptor.needs }),
    instance,
    onFailure: descriptor.on_failure ?? description.on_failure ?? 'open',
  }
}

/**
 * Checks the module against the interface and the limits of the gateway.
 *
 * @param isCompiled V8 accepts the module
 * @throws ModuleRejected
 */
async function checkModule(
  bytes: Uint8Array<ArrayBuffer>,
  attachPoints: readonly AttachPoint[],
  usesWasi: boolean,
  config: WasmConfig,
  isCompiled: boolean,
): Promise<ModuleParts> {
  if (usesWasi && !config.allowWasi)
    throw new ModuleRejected('wasi: true requires plugins.wasm.allowWasi: true')
  // Explains files of other formats better than V8.
  readSections(bytes)
  if (!isCompiled) await compileModule(bytes)
  const parts = readParts(bytes)
  for (const { message, next } of moduleProblems(parts, attachPoints, usesWasi))
    throw new BadModule(`${message}; ${next}`)
  return parts
}

/** Warm instances are not restored, so their stores are not recorded. */
function isRestored({ instance }: Pick<LoadedModule, 'instance'>): boolean {
  return instance === 'fresh'
}

/** The fuel of one start does not bound the next, which may run on the data thread: a start can depend on the clock. */
function unitsOfStart(module: Ready, burntAtStart: number, { inline }: WasmConfig): number {
  const units = inlineStartFuel(inline.fuel)
  if (!module.hasStart || !mayRunHere(module) || burntAtStart > units) return module.startFuel
  return Math.min(module.startFuel, units)
}

/** @throws ModuleRejected naming the setting */
function checkSettings(settings: Settings | null, config: Readonly<Record<string, string>>): void {
  const problem = settings === null ? null : settingProblem(settings, config)
  if (problem !== null) throw new ModuleRejected(problem)
}

/** For a module to start and describe itself, milliseconds. */
const TRY_MS = 10_000

/** Instantiates the module once on a pool thread and reads its description. */
async function tryModule(
  module: Ready,
  hasDescribe: boolean,
  pool: LoadParts['pool'],
): Promise<{ description: Partial<Description>; burntAtStart: number }> {
  const { uuid } = module
  if (!module.hasStart && !module.usesWasi && !hasDescribe) {
    await instantiate(module.module)
    return { description: {}, burntAtStart: 0 }
  }
  // No request waits for it, and thread starts are slow on a busy machine; fuel bounds the guest.
  const limitMs = Math.max(module.timeoutMs, TRY_MS)
  const end = await pool.run({
    draft: () => ({ task: { kind: 'describe', chain: [uuid], hasDescribe }, transfer: [] }),
    modules: [{ ...module, row: 0 }],
    limitMs: () => limitMs,
    shortestMs: limitMs,
  })
  if (end.kind === 'timeout') throw new ModuleRejected('the module did not start within the time limit')
  if (end.kind !== 'result' || end.result.kind !== 'describe')
    throw new ModuleRejected('the trial start of the module was not possible')
  const { failure, json, startFuel: burntAtStart } = end.result
  if (failure !== null)
    throw new ModuleRejected(`the trial start of the module failed: ${describeFailure(failure, module)}`)
  return { description: json === null ? {} : readDescription(json), burntAtStart }
}

/** The fuel of an instance whose start function trapped cannot be read. */
function describeFailure(failure: string, { hasStart }: Ready): string {
  if (!hasStart || failure !== 'unreachable') return failure
  return 'the start function trapped, possibly because its fuel was used up'
}

/** Without a start function this runs no code: it finds data that does not fit into the memory. */
async function instantiate(module: WebAssembly.Module): Promise<void> {
  const imports: Record<string, Record<string, () => void>> = {}
  for (const { module: namespace, name } of WebAssembly.Module.imports(module)) {
    imports[namespace] ??= {}
    imports[namespace][name] = () => {}
  }
  try {
    await WebAssembly.instantiate(module, imports)
  } catch (error) {
    throw new BadModule(`the module cannot be instantiated: ${(error as Error).message}`)
  }
}

function matcherOf({ match = {} }: ModuleDescriptor): Matcher {
  if (match.headers === undefined) return match
  const headers = Object.entries(match.headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return { ...match, headers: Object.fromEntries(headers) }
}

function needsOf(given: ModuleNeeds): Required<ModuleNeeds> {
  const lower = (needs: boolean | readonly string[]) =>
    typeof needs === 'boolean' ? needs : needs.map((name) => name.toLowerCase())
  return {
    headers: lower(given.headers ?? true),
    credentials: given.credentials ?? false,
    client_ip: given.client_ip ?? true,
    request_body: given.request_body ?? false,
    response_headers: lower(given.response_headers ?? true),
    response_body: given.response_body ?? false,
  }
}
