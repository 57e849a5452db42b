;; Tells the worker through which gateway a request came: a header with a value that never changes.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))

  (memory 1)
  ;; What `describe` answers: JSON, no frame.
  (data (i32.const 0) "{\"abi\":1,\"needs\":{\"headers\":[]}}")
  ;; A frame: length of the head, little-endian, and the head; the body is empty.
  (data (i32.const 64) "\3f\00\00\00{\"action\":\"modify\",\"headers_set\":[[\"x-served-through\",\"weir\"]]}")

  ;; Copies bytes of the memory into a block of the host, and gives it as the output.
  (func $answer (param $from i32) (param $length i32)
    (local $block i64)
    (local $at i32)
    (local.set $block (call $alloc (i64.extend_i32_u (local.get $length))))
    (loop $copy
      (call $store
        (i64.add (local.get $block) (i64.extend_i32_u (local.get $at)))
        (i32.load8_u (i32.add (local.get $from) (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $copy (i32.lt_u (local.get $at) (local.get $length))))
    (call $output (local.get $block) (i64.extend_i32_u (local.get $length))))

  (func (export "describe") (result i32)
    (call $answer (i32.const 0) (i32.const 32))
    (i32.const 0))

  (func (export "on_request") (result i32)
    (call $answer (i32.const 64) (i32.const 67))
    (i32.const 0)))
