/** Which instructions write to memory, and what kind of value. */
import { OP, VALUE } from './instruction.ts'

/** By op - 0x36: the stores of i32, i64, f32 and f64, then the narrow ones. */
const STORED = [
  VALUE.i32,
  VALUE.i64,
  VALUE.f32,
  VALUE.f64,
  VALUE.i32,
  VALUE.i32,
  VALUE.i64,
  VALUE.i64,
  VALUE.i64,
] as const

/** @returns the type of the value that a store takes; null for what is no store */
export function storedType(op: number): number | null {
  if (op >= OP.firstStore && op <= OP.lastStore) return STORED[op - OP.firstStore]
  if (op === OP.v128Store) return VALUE.v128
  return op >= OP.firstStoreLane && op <= OP.lastStoreLane ? VALUE.v128 : null
}
