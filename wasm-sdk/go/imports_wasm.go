//go:build wasm

package weir

// Functions of the gateway. ABI.md describes them.

//go:wasmimport extism:host/env alloc
func hostAlloc(length uint64) uint64

//go:wasmimport extism:host/env free
func hostFree(block uint64)

//go:wasmimport extism:host/env length
func hostLength(block uint64) uint64

//go:wasmimport extism:host/env load_u8
func hostLoadByte(offset uint64) uint32

//go:wasmimport extism:host/env load_u64
func hostLoadWord(offset uint64) uint64

//go:wasmimport extism:host/env store_u8
func hostStoreByte(offset uint64, value uint32)

//go:wasmimport extism:host/env store_u64
func hostStoreWord(offset uint64, value uint64)

//go:wasmimport extism:host/env input_length
func hostInputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func hostInputByte(offset uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func hostInputWord(offset uint64) uint64

//go:wasmimport extism:host/env output_set
func hostOutputSet(block uint64, length uint64)

//go:wasmimport extism:host/env error_set
func hostErrorSet(block uint64)

//go:wasmimport extism:host/env config_get
func hostConfigGet(key uint64) uint64

//go:wasmimport extism:host/env log_debug
func hostLogDebug(text uint64)

//go:wasmimport extism:host/env log_info
func hostLogInfo(text uint64)

//go:wasmimport extism:host/env log_warn
func hostLogWarn(text uint64)

//go:wasmimport extism:host/env log_error
func hostLogError(text uint64)

//go:wasmimport extism:host/user kv_get
func hostKvGet(key uint64) uint64

//go:wasmimport extism:host/user kv_set
func hostKvSet(key, value uint64, ttlMs int64) int64

//go:wasmimport extism:host/user kv_delete
func hostKvDelete(key uint64) int64

//go:wasmimport extism:host/user kv_incr
func hostKvIncr(key uint64, delta, ttlMs int64) int64

//go:wasmimport extism:host/user random_bytes
func hostRandomBytes(count int64) uint64

//go:wasmimport extism:host/user sha256
func hostSha256(data uint64) uint64

//go:wasmimport extism:host/user hmac_sha256
func hostHmacSha256(key, data uint64) uint64

//go:wasmimport extism:host/user metric_inc
func hostMetricInc(name uint64, delta int64) int64

//go:wasmimport extism:host/user metric_observe
func hostMetricObserve(name uint64, value int64) int64

//go:wasmimport extism:host/user metric_set
func hostMetricSet(name uint64, value int64) int64
