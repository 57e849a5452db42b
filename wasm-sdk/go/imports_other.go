//go:build !wasm

package weir

// Outside of the gateway, so that `go vet` and unit tests of handlers compile on the host. Functions of the gateway
// return nothing there.

func hostAlloc(uint64) uint64               { return 0 }
func hostFree(uint64)                       {}
func hostLength(uint64) uint64              { return 0 }
func hostLoadByte(uint64) uint32            { return 0 }
func hostLoadWord(uint64) uint64            { return 0 }
func hostStoreByte(uint64, uint32)          {}
func hostStoreWord(uint64, uint64)          {}
func hostInputLength() uint64               { return 0 }
func hostInputByte(uint64) uint32           { return 0 }
func hostInputWord(uint64) uint64           { return 0 }
func hostOutputSet(uint64, uint64)          {}
func hostErrorSet(uint64)                   {}
func hostConfigGet(uint64) uint64           { return 0 }
func hostLogDebug(uint64)                   {}
func hostLogInfo(uint64)                    {}
func hostLogWarn(uint64)                    {}
func hostLogError(uint64)                   {}
func hostKvGet(uint64) uint64               { return 0 }
func hostKvSet(_, _ uint64, _ int64) int64  { return 0 }
func hostKvDelete(uint64) int64             { return 0 }
func hostKvIncr(_ uint64, _, _ int64) int64 { return 0 }
func hostRandomBytes(int64) uint64          { return 0 }
func hostSha256(uint64) uint64              { return 0 }
func hostHmacSha256(_, _ uint64) uint64     { return 0 }
func hostMetricInc(uint64, int64) int64     { return 0 }
func hostMetricObserve(uint64, int64) int64 { return 0 }
func hostMetricSet(uint64, int64) int64     { return 0 }
