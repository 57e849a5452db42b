/**
 * WASI preview 1 for guests: a clock, random numbers, and output as log lines. There are no files, variables, arguments
 * or sockets, and no state between calls.
 *
 * @source WASI snapshot preview 1
 */
import { randomFillSync } from 'node:crypto'
import type { GuestState } from './guest-kernel.ts'

const [SUCCESS, BAD_FILE, NOT_SUPPORTED, INVALID] = [0, 8, 52, 28]
const CLOCKS = 2
const MAX_RANDOM_BYTES = 65_536
const MAX_PARTS = 64
const CHARACTER_DEVICE = 2

type WasiFunction = (...args: never[]) => number

/** Functions that return an error. */
const UNSUPPORTED = [
  'fd_advise',
  'fd_allocate',
  'fd_datasync',
  'fd_fdstat_set_flags',
  'fd_fdstat_set_rights',
  'fd_filestat_get',
  'fd_filestat_set_size',
  'fd_filestat_set_times',
  'fd_pread',
  'fd_prestat_dir_name',
  'fd_prestat_get',
  'fd_pwrite',
  'fd_readdir',
  'fd_renumber',
  'fd_seek',
  'fd_sync',
  'fd_tell',
  'path_create_directory',
  'path_filestat_get',
  'path_filestat_set_times',
  'path_link',
  'path_open',
  'path_readlink',
  'path_remove_directory',
  'path_rename',
  'path_symlink',
  'path_unlink_file',
  'poll_oneoff',
  'proc_raise',
  'sock_accept',
  'sock_recv',
  'sock_send',
  'sock_shutdown',
] as const

export function wasiFunctions(instance: GuestState): Record<string, WasiFunction> {
  const view = () => new DataView((instance.memory as WebAssembly.Memory).buffer)
  const put32 = (at: number, value: number) => {
    view().setUint32(at, value, true)
    instance.markWritten(at, 4)
  }
  const put64 = (at: number, value: bigint) => {
    view().setBigUint64(at, value, true)
    instance.markWritten(at, 8)
  }
  const nothing = (countAt: number, bytesAt: number) => {
    put32(countAt >>> 0, 0)
    put32(bytesAt >>> 0, 0)
    return SUCCESS
  }
  const functions: Record<string, WasiFunction> = {
    args_get: () => SUCCESS,
    args_sizes_get: nothing,
    environ_get: () => SUCCESS,
    environ_sizes_get: nothing,
    clock_res_get: (clock: number, at: number) => {
      if (clock < 0 || clock >= CLOCKS) return INVALID
      put64(at >>> 0, 1_000_000n)
      return SUCCESS
    },
    clock_time_get: (clock: number, _precision: bigint, at: number) => {
      if (clock < 0 || clock >= CLOCKS) return INVALID
      put64(at >>> 0, clock === 0 ? BigInt(Date.now()) * 1_000_000n : process.hrtime.bigint())
      return SUCCESS
    },
    random_get: (at: number, count: number) => {
      if (count < 0 || count > MAX_RANDOM_BYTES) return INVALID
      instance.burn(count)
      randomFillSync(new Uint8Array(view().buffer, at >>> 0, count))
      instance.markWritten(at >>> 0, count)
      return SUCCESS
    },
    fd_close: (fd: number) => (fd < 0 || fd > 2 ? BAD_FILE : SUCCESS),
    fd_fdstat_get: (fd: number, at: number) => {
      if (fd < 0 || fd > 2) return BAD_FILE
      for (let offset = 0; offset < 24; offset += 4) put32((at >>> 0) + offset, 0)
      view().setUint8(at >>> 0, CHARACTER_DEVICE)
      return SUCCESS
    },
    fd_read: (fd: number, _parts: number, _count: number, at: number) => {
      if (fd !== 0) return BAD_FILE
      put32(at >>> 0, 0)
      return SUCCESS
    },
    fd_write: (fd: number, partsAt: number, count: number, at: number) => {
      if (fd !== 1 && fd !== 2) return BAD_FILE
      const { text, bytes } = readParts(view(), partsAt >>> 0, count)
      if (text !== '') instance.log.write(fd === 1 ? 'info' : 'warn', text)
      put32(at >>> 0, bytes)
      return SUCCESS
    },
    proc_exit: (code: number) => {
      throw new Error(`the module exited with code ${code}`)
    },
    sched_yield: () => SUCCESS,
  }
  for (const name of UNSUPPORTED) functions[name] = () => (name.startsWith('fd_p') ? BAD_FILE : NOT_SUPPORTED)
  return functions
}

/** The text of a gathered write, truncated to the length of a log line. */
function readParts(view: DataView, at: number, count: number): { text: string; bytes: number } {
  const texts: string[] = []
  let bytes = 0
  for (let part = 0; part < Math.min(count, MAX_PARTS); part++) {
    const from = view.getUint32(at + part * 8, true)
    const length = view.getUint32(at + part * 8 + 4, true)
    const shown = Math.max(0, Math.min(length, 2_048 - bytes, view.byteLength - from))
    if (shown > 0) texts.push(Buffer.from(view.buffer, from, shown).toString('utf8'))
    bytes += length
  }
  return { text: texts.join('').trimEnd(), bytes }
}
