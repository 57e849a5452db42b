/** Numbers of the binary format. @source WebAssembly core 3.0, 5.3 and 5.4; legacy exception handling proposal */

/** Opcodes that the rewriter reads or writes; ranges by their first and last one. */
export const OP = {
  unreachable: 0x00,
  nop: 0x01,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  try: 0x06,
  catch: 0x07,
  throw: 0x08,
  rethrow: 0x09,
  throwRef: 0x0a,
  end: 0x0b,
  br: 0x0c,
  brIf: 0x0d,
  brTable: 0x0e,
  return: 0x0f,
  call: 0x10,
  callIndirect: 0x11,
  returnCall: 0x12,
  returnCallIndirect: 0x13,
  callRef: 0x14,
  returnCallRef: 0x15,
  delegate: 0x18,
  catchAll: 0x19,
  drop: 0x1a,
  select: 0x1b,
  selectTyped: 0x1c,
  tryTable: 0x1f,
  localGet: 0x20,
  localSet: 0x21,
  localTee: 0x22,
  globalGet: 0x23,
  globalSet: 0x24,
  tableGet: 0x25,
  tableSet: 0x26,
  firstLoad: 0x28,
  i32Load: 0x28,
  i64Load: 0x29,
  i32Load8U: 0x2d,
  firstStore: 0x36,
  i32Store: 0x36,
  i64Store: 0x37,
  f64Store: 0x39,
  i32Store8: 0x3a,
  lastStore: 0x3e,
  memorySize: 0x3f,
  memoryGrow: 0x40,
  i32Const: 0x41,
  i64Const: 0x42,
  f32Const: 0x43,
  f64Const: 0x44,
  i32Eqz: 0x45,
  i32Eq: 0x46,
  i32LtS: 0x48,
  i32GtU: 0x4b,
  i64LtS: 0x53,
  i64GtU: 0x56,
  i64GeU: 0x5a,
  i32Add: 0x6a,
  i32Sub: 0x6b,
  i32And: 0x71,
  i32Shl: 0x74,
  i32ShrU: 0x76,
  i64Add: 0x7c,
  i64Sub: 0x7d,
  i64Or: 0x84,
  i64ExtendI32S: 0xac,
  i64Mul: 0x7e,
  i64ShrU: 0x88,
  i32WrapI64: 0xa7,
  i64ExtendI32U: 0xad,
  i64TruncF64S: 0xb0,
  f64ConvertI64S: 0xb9,
  lastNumeric: 0xc4,
  refNull: 0xd0,
  refIsNull: 0xd1,
  refFunc: 0xd2,
  refEq: 0xd3,
  refAsNonNull: 0xd4,
  brOnNull: 0xd5,
  brOnNonNull: 0xd6,
  // With prefix 0xfb.
  structNew: 0xfb00,
  structNewDefault: 0xfb01,
  structSet: 0xfb05,
  arrayNew: 0xfb06,
  arrayNewDefault: 0xfb07,
  arrayNewFixed: 0xfb08,
  arrayNewData: 0xfb09,
  arrayNewElem: 0xfb0a,
  arraySet: 0xfb0e,
  arrayLen: 0xfb0f,
  arrayFill: 0xfb10,
  arrayCopy: 0xfb11,
  arrayInitData: 0xfb12,
  arrayInitElem: 0xfb13,
  refTest: 0xfb14,
  refCastNull: 0xfb17,
  brOnCast: 0xfb18,
  brOnCastFail: 0xfb19,
  lastCollected: 0xfb1e,
  // With prefix 0xfc.
  memoryInit: 0xfc08,
  dataDrop: 0xfc09,
  memoryCopy: 0xfc0a,
  memoryFill: 0xfc0b,
  tableInit: 0xfc0c,
  elemDrop: 0xfc0d,
  tableCopy: 0xfc0e,
  tableGrow: 0xfc0f,
  tableFill: 0xfc11,
  // With prefix 0xfd.
  v128Store: 0xfd0b,
  firstStoreLane: 0xfd58,
  lastStoreLane: 0xfd5b,
} as const

/** A value type as its byte. */
export const VALUE = { i32: 0x7f, i64: 0x7e, f32: 0x7d, f64: 0x7c, v128: 0x7b } as const

/** First byte of a reference type with a heap type; the first form includes null. */
export const [NULLABLE, NOT_NULL] = [0x63, 0x64]

/** Type of a block without parameters and results. */
export const EMPTY_BLOCK = 0x40

/** Returns true if the instruction opens a block. */
export function isOpening(op: number): boolean {
  return op === OP.block || op === OP.loop || op === OP.if || op === OP.try || op === OP.tryTable
}

/** Returns true if the instruction branches depending on a reference. */
export function branchesOnReference(op: number): boolean {
  return op === OP.brOnNull || op === OP.brOnNonNull || op === OP.brOnCast || op === OP.brOnCastFail
}
