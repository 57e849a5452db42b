package weir

import "math"

// Config returns a setting of the module, or the fallback.
func Config(name, fallback string) string {
	value := takeBlock(with(name, hostConfigGet))
	if value == nil {
		return fallback
	}
	return string(value)
}

// KvGet returns a stored value; nil if it is absent or has expired. Values belong to the module and the tenant.
func KvGet(key string) []byte { return takeBlock(with(key, hostKvGet)) }

// KvSet stores a value for a time in milliseconds; 0 is the longest, one day. It returns false if it was not stored.
func KvSet(key string, value []byte, ttlMs int64) bool {
	return with(key, func(key uint64) bool {
		return with(string(value), func(value uint64) int64 { return hostKvSet(key, value, ttlMs) }) == 1
	})
}

// KvDelete deletes a value. It returns false if there was none.
func KvDelete(key string) bool { return with(key, hostKvDelete) == 1 }

// KvIncrement adds to a counter, atomically over all threads, and returns its new value. The time to live in
// milliseconds starts with the first increment. It returns false if the gateway could not count.
func KvIncrement(key string, delta, ttlMs int64) (int64, bool) {
	value := with(key, func(key uint64) int64 { return hostKvIncr(key, delta, ttlMs) })
	return value, value != math.MinInt64
}

// RandomBytes returns cryptographically secure random bytes, 1 to 1024.
func RandomBytes(count int) []byte { return takeBlock(hostRandomBytes(int64(count))) }

// Sha256 returns the SHA-256 hash, 32 bytes.
func Sha256(data []byte) []byte { return takeBlock(with(string(data), hostSha256)) }

// HmacSha256 returns the HMAC with SHA-256, 32 bytes.
func HmacSha256(key, data []byte) []byte {
	return with(string(key), func(key uint64) []byte {
		return takeBlock(with(string(data), func(data uint64) uint64 { return hostHmacSha256(key, data) }))
	})
}

// CountMetric adds to a counter of the gateway's metrics. Names match [a-z][a-z0-9_]*; name{value} has the label "label".
func CountMetric(name string, delta int64) {
	with(name, func(name uint64) int64 { return hostMetricInc(name, delta) })
}

// ObserveMetric adds a number from 0 to a histogram of the gateway's metrics, named like those of CountMetric.
func ObserveMetric(name string, value int64) {
	with(name, func(name uint64) int64 { return hostMetricObserve(name, value) })
}

// SetMetric sets a gauge of the gateway's metrics, which has one value for all threads: the last one.
func SetMetric(name string, value int64) {
	with(name, func(name uint64) int64 { return hostMetricSet(name, value) })
}

// LogDebug writes a line to the log of the gateway. Do not log user content.
func LogDebug(text string) { writeLine(hostLogDebug, text) }

// LogInfo is like LogDebug.
func LogInfo(text string) { writeLine(hostLogInfo, text) }

// LogWarn is like LogDebug.
func LogWarn(text string) { writeLine(hostLogWarn, text) }

// LogError is like LogDebug.
func LogError(text string) { writeLine(hostLogError, text) }

func writeLine(write func(uint64), text string) {
	with(text, func(block uint64) struct{} { write(block); return struct{}{} })
}
