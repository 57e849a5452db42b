/** The memory under a value that may be moved to another thread instead of copied. */

/** Buffers of the value itself and of its direct members. */
export function buffersOf(value: unknown): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>()
  add(buffers, value)
  if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value))
    for (const member of Object.values(value)) add(buffers, member)
  return [...buffers]
}

function add(buffers: Set<ArrayBuffer>, value: unknown): void {
  const buffer = ArrayBuffer.isView(value) ? value.buffer : value
  if (buffer instanceof ArrayBuffer) buffers.add(buffer)
}
